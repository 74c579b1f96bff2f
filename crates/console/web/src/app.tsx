// The frame of all pages: navigation, sign-in, what is said to everybody.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, askSession, expired, lostSince, session, signOut } from "./api";
import { useAddress, useStore, useTicking } from "./hooks";
import { AgentsPage } from "./pages/agents";
import { ComparePage } from "./pages/compare";
import { HistoryPage } from "./pages/history";
import { MakePage } from "./pages/make";
import { MakeMatrixPage } from "./pages/make-matrix";
import { MatrixPage } from "./pages/matrix";
import { OverviewPage } from "./pages/overview";
import { RunPage } from "./pages/run";
import { SignIn } from "./pages/sign-in";
import { SubmitPage } from "./pages/submit";
import { TimelinePage } from "./pages/timeline";
import { Theme, choose, theme } from "./theme";
import { Dialog, ErrorBox, Page, attempt, told } from "./ui";

const NAVIGATION: [name: string, to: string, pages: string[]][] = [
  ["Overview", "#/", [""]],
  ["History", "#/history", ["history", "runs", "matrix", "compare"]],
  ["Submit", "#/submit", ["submit"]],
  ["Make a workload", "#/make", ["make", "make-matrix"]],
  ["Agents", "#/agents", ["agents"]],
];

export function App() {
  const who = useStore(session);
  const isExpired = useStore(expired);
  const [error, setError] = useState<ApiError | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    askSession().then(() => setError(null), (failed: unknown) => {
      if (!(failed instanceof ApiError)) return;
      setError(failed);
      timer = setTimeout(() => setRound((n) => n + 1), 3000);
    });
    return () => clearTimeout(timer);
  }, [round]);
  if (who === null) {
    return (
      <main class="alone">
        {error ? <ErrorBox error={error} retry={() => setRound((n) => n + 1)} /> : <p class="empty" role="status">Loading…</p>}
      </main>
    );
  }
  if (!who.user) return <main class="alone"><SignIn /></main>;
  return (
    <>
      <Frame />
      {isExpired ? (
        <Dialog label="Sign in again" onClose={null}>
          <SignIn note="Your session has ended. Sign in to go on; what you typed is still here." user={who.user} />
        </Dialog>
      ) : null}
    </>
  );
}

function Frame() {
  const { parts } = useAddress();
  const who = useStore(session);
  const main = useRef<HTMLElement>(null);
  const path = parts.join("/");
  const isFirst = useRef(true);
  useEffect(() => {
    if (isFirst.current) {
      isFirst.current = false;
      return;
    }
    scrollTo(0, 0);
    document.getElementById("title")?.focus();
  }, [path]);
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>Skip to the content</button>
      <header class="bar">
        <a href="#/" class="brand" aria-label="Plimsoll console, overview"><img src="icon.svg" alt="" width="22" height="22" />Plimsoll</a>
        <nav aria-label="Pages">
          {NAVIGATION.map(([name, to, pages]) => (
            <a key={to} href={to} aria-current={pages.includes(parts[0] ?? "") ? "page" : undefined}>{name}</a>
          ))}
        </nav>
        <div class="who">
          <ThemeSwitch />
          {who?.sign_in === "form" ? (
            <>
              <span class="name">{who.user}</span>
              <button type="button" onClick={() => attempt(signOut)}>Sign out</button>
            </>
          ) : null}
        </div>
      </header>
      <Connection />
      <main ref={main} tabIndex={-1} id="main"><Routed parts={parts} /></main>
      <footer class="foot caption">
        {who?.name ? `${who.name} · ` : ""}plimsoll {who?.version ?? ""} · 1 MiB = 1,048,576 bytes; – is unknown · times are in this browser's time zone · <a href="/api/v1/openapi.json">the API</a>
      </footer>
      <Told />
    </>
  );
}

function Routed({ parts }: { parts: string[] }): JSX.Element {
  const [page = "", id, part] = parts;
  switch (page) {
    case "": return <OverviewPage />;
    case "history": return <HistoryPage />;
    case "submit": return <SubmitPage />;
    case "make": return <MakePage />;
    case "make-matrix": return <MakeMatrixPage />;
    case "agents": return <AgentsPage />;
    case "matrix": return <MatrixPage />;
    case "compare": return <ComparePage />;
    case "runs":
      if (id && part === "timeline") return <TimelinePage key={id} id={id} />;
      if (id && part === undefined) return <RunPage key={id} id={id} />;
  }
  return <Page title="There is no such page"><p>Nothing is at <code>{location.hash}</code>. <a href="#/">Go to the overview</a></p></Page>;
}

function ThemeSwitch() {
  const value = useStore(theme);
  return (
    <select class="theme" aria-label="Colours" value={value} onChange={(event) => choose(event.currentTarget.value as Theme)} data-test="theme">
      <option value="system">System colours</option>
      <option value="light">Light</option>
      <option value="dark">Dark</option>
    </select>
  );
}

function Connection() {
  const since = useStore(lostSince);
  useTicking(1000, since !== null);
  return (
    <div role="status" data-test="connection">
      {since === null ? null : (
        <p class="lost">No connection to the controller for {Math.max(0, Math.round((Date.now() - since) / 1000))} s. What is shown may be old; the console tries again by itself.</p>
      )}
    </div>
  );
}

/** What was done or went wrong, in a corner; it goes away by itself, errors only when closed. */
function Told() {
  const what = useStore(told);
  useEffect(() => {
    if (!what || what.isBad) return;
    const timer = setTimeout(() => told.set(null), 6000);
    return () => clearTimeout(timer);
  }, [what]);
  return (
    <div class="told" role={what?.isBad ? "alert" : "status"} aria-live="polite">
      {what ? (
        <div class={what.isBad ? "box failure" : "box done"}>
          <span>{what.text}</span>
          <button type="button" aria-label="Close this message" onClick={() => told.set(null)}>×</button>
        </div>
      ) : null}
    </div>
  );
}
