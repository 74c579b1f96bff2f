// What pages share: values that change, questions that are asked again, the address.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, Store, api, expired, lostSince } from "./api";

export function useStore<T>(store: Store<T>): T {
  const [, redraw] = useState(0);
  useEffect(() => {
    const stop = store.listen(() => redraw((n) => n + 1));
    redraw((n) => n + 1);
    return stop;
  }, [store]);
  return store.value;
}

export interface Asked<T> {
  data: T | null;
  error: ApiError | null;
  /** Nothing was answered for two seconds. */
  slow: boolean;
  /** What is shown answers the question before; the answer to this one is on its way. */
  isOld: boolean;
  reload: () => void;
}

/** Asks a path, again each `everyMs` while the page is seen; keeps the last answer when one fails, and
 * with `keepsOld` also while another path is asked. */
export function useAsked<T>(path: string | null, everyMs = 0, keepsOld = false): Asked<T> {
  const [state, setState] = useState<{ path: string | null; data: T | null; error: ApiError | null; slow: boolean }>({ path: null, data: null, error: null, slow: false });
  const [round, setRound] = useState(0);
  const failures = useRef(0);
  useEffect(() => {
    if (path === null) return;
    const stop = new AbortController();
    let next: ReturnType<typeof setTimeout> | undefined;
    const ask = async () => {
      const late = setTimeout(() => setState((old) => ({ ...old, slow: true })), 2000);
      try {
        const data = await api<T>(path, { signal: stop.signal });
        failures.current = 0;
        if (!stop.signal.aborted) setState({ path, data, error: null, slow: false });
      } catch (error) {
        if (!(error instanceof ApiError) || error.code === "left") return;
        failures.current += 1;
        setState((old) => ({ path, data: old.path === path ? old.data : null, error, slow: false }));
      } finally {
        clearTimeout(late);
      }
      if (stop.signal.aborted) return;
      // One that cannot be had is asked again, ever less often; one that is refused is not.
      const isLost = failures.current > 0 && lostSince.value !== null;
      const wait = isLost ? Math.min(15_000, 1000 * 2 ** Math.min(failures.current, 4)) : everyMs;
      if (wait > 0) next = setTimeout(whenSeen, wait);
    };
    const whenSeen = () => {
      if (document.visibilityState === "visible" && !expired.value) void ask();
      else next = setTimeout(whenSeen, 1000);
    };
    const back = expired.listen(() => {
      if (!expired.value) setRound((n) => n + 1);
    });
    void ask();
    return () => {
      stop.abort();
      clearTimeout(next);
      back();
    };
  }, [path, everyMs, round]);
  const reload = useCallback(() => setRound((n) => n + 1), []);
  const isCurrent = state.path === path;
  const data = isCurrent || keepsOld ? state.data : null;
  return { data, error: isCurrent ? state.error : null, slow: state.slow, isOld: !isCurrent && data !== null, reload };
}

/** The present address behind `#`: its path in parts and its query. */
export interface Address { parts: string[]; query: URLSearchParams }

export function readAddress(): Address {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").filter((part) => part !== "").map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  return { parts, query: new URLSearchParams(query) };
}

export function useAddress(): Address {
  const [address, setAddress] = useState(readAddress);
  useEffect(() => {
    const read = () => setAddress(readAddress());
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);
  return address;
}

export function go(to: string): void {
  location.hash = to;
}

/** Changes the query of the address without a step in the browser's history. */
export function setQuery(changes: Record<string, string | null>): void {
  const { query } = readAddress();
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") query.delete(name);
    else query.set(name, value);
  }
  const path = location.hash.split("?", 1)[0] || "#/";
  const text = query.toString().replaceAll("%2C", ",");
  history.replaceState(null, "", text === "" ? path : `${path}?${text}`);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** Calls back each `everyMs` while mounted. */
export function useTicking(everyMs: number, isOn: boolean): void {
  const [, redraw] = useState(0);
  useEffect(() => {
    if (!isOn) return;
    const timer = setInterval(() => redraw((n) => n + 1), everyMs);
    return () => clearInterval(timer);
  }, [everyMs, isOn]);
}
