// The stream of events of a run while its page is seen. It is closed while the tab is hidden, as a
// browser keeps only six connections to a server for all tabs, and taken up where it was left.
import { LogLine, RunDetail, Tick, askSession, expired, fileUrl, harmless, runPath } from "./api";

export interface Listener {
  onRun(run: RunDetail): void;
  onTick(tick: Tick): void;
  onLog(line: LogLine): void;
  /** What was missed is not kept any more. */
  onReset(): void;
  onEnd(): void;
  /** Null: the connection stands. Otherwise how long until the next try, in ms. */
  onConnection(retryMs: number | null): void;
}

const RETRY_MS_MAX = 15_000;
/** The server says something at least each 10 s. */
const SILENCE_MS_MAX = 30_000;

export class Live {
  private source: EventSource | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private silence: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;
  private isClosed = false;
  private readonly unlisten: () => void;

  constructor(private readonly id: string, public seq: number, private readonly listener: Listener) {
    document.addEventListener("visibilitychange", this.seen);
    this.unlisten = expired.listen(() => this.seen());
    this.seen();
  }

  close(): void {
    this.isClosed = true;
    document.removeEventListener("visibilitychange", this.seen);
    this.unlisten();
    this.drop();
  }

  private readonly seen = () => {
    if (this.isClosed) return;
    if (document.visibilityState === "visible" && !expired.value) {
      if (!this.source) this.open();
    } else {
      this.drop();
    }
  };

  private drop(): void {
    clearTimeout(this.timer);
    clearTimeout(this.silence);
    this.source?.close();
    this.source = null;
  }

  private open(): void {
    this.drop();
    const source = new EventSource(fileUrl(`${runPath(this.id)}/events?after=${this.seq}`));
    this.source = source;
    const on = <T>(name: string, then: (data: T, event: MessageEvent<string>) => void) => {
      source.addEventListener(name, (event) => {
        this.heard();
        let data: T;
        try {
          data = JSON.parse((event as MessageEvent<string>).data, harmless) as T;
        } catch {
          return;
        }
        then(data, event as MessageEvent<string>);
      });
    };
    source.addEventListener("open", () => {
      this.failures = 0;
      this.heard();
      this.listener.onConnection(null);
    });
    source.addEventListener("error", () => this.retry());
    on<RunDetail>("run", (run) => this.listener.onRun(run));
    on<Tick>("tick", (tick) => {
      this.seq = Math.max(this.seq, tick.seq);
      this.listener.onTick(tick);
    });
    on<LogLine>("log", (line) => this.listener.onLog(line));
    on("alive", () => undefined);
    on("reset", () => this.listener.onReset());
    on("end", () => {
      this.close();
      this.listener.onEnd();
    });
    this.heard();
  }

  private heard(): void {
    clearTimeout(this.silence);
    // Comments are not told to a page, so silence alone is no loss: the stream is quietly taken anew.
    this.silence = setTimeout(() => this.open(), SILENCE_MS_MAX);
  }

  private retry(): void {
    if (this.isClosed) return;
    this.drop();
    const wait = Math.min(RETRY_MS_MAX, 1000 * 2 ** this.failures);
    this.failures += 1;
    this.listener.onConnection(wait);
    // An event stream does not tell why it was refused.
    askSession().catch(() => undefined);
    this.timer = setTimeout(() => this.seen(), wait);
  }
}
