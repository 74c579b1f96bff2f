// Who are you?
import { useState } from "preact/hooks";
import { ApiError, session, signIn } from "../api";
import { useStore } from "../hooks";
import { ErrorBox } from "../ui";

export function SignIn(props: { note?: string; user?: string }) {
  const who = useStore(session);
  const [user, setUser] = useState(props.user ?? "");
  const [password, setPassword] = useState("");
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await signIn(user, password);
      setError(null);
    } catch (failed) {
      const error = failed instanceof ApiError ? failed : null;
      setError(error?.status === 401 ? new ApiError(401, "refused", error.message) : error);
      setPassword("");
    }
    setBusy(false);
  };
  return (
    <form class="sign-in" onSubmit={submit} data-test="sign-in">
      <h1 id={props.note ? undefined : "title"} tabIndex={-1}><img src="icon.svg" alt="" width="32" height="32" /> Sign in to Plimsoll</h1>
      {who?.name ? <p class="caption">{who.name}</p> : null}
      {props.note ? <p class="box note">{props.note}</p> : null}
      <ErrorBox error={error} />
      <label>User name<input name="user" autocomplete="username" value={user} required onInput={(event) => setUser(event.currentTarget.value)} /></label>
      <label>Password<input name="password" type="password" autocomplete="current-password" value={password} required onInput={(event) => setPassword(event.currentTarget.value)} /></label>
      <button type="submit" class="primary" disabled={isBusy}>{isBusy ? "Signing in…" : "Sign in"}</button>
    </form>
  );
}
