// The stream of events of a run while its page is seen. It is closed while the tab is hidden, as a
// browser keeps only six connections to a server for all tabs, and taken up where it was left.
import { LogLine, RunDetail, Tick, askSession, expired, fileUrl, harmless, runPath } from "./api";

export interface Listener {
  onRun(run: RunDetail): void;
  onTick(tick: Tick): void;
  onLog(line: LogLine): void;
  /** What was missed is not kept any more, or too much to be sent again: asks for all that there is,
   * and returns up to where; null where that failed. */
  onReset(): Promise<number | null>;
  onEnd(): void;
  /** Null: the connection stands. Otherwise how long until the next try, in ms. */
  onConnection(retryMs: number | null): void;
}

const RETRY_MS_MAX = 15_000;
/** The server says something at least each 10 s. */
const SILENCE_MS_MAX = 30_000;
/** After a longer absence everything is asked for anew, which is less than all seconds one by one. */
const MISSED_MS_MAX = 20_000;

export class Live {
  private source: EventSource | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private silence: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;
  private isClosed = false;
  private isOpening = false;
  private heardAt = performance.now();
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
      if (!this.source) void this.open();
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

  private async open(): Promise<void> {
    if (this.isOpening) return;
    this.isOpening = true;
    this.drop();
    if (performance.now() - this.heardAt > MISSED_MS_MAX) await this.reset();
    this.isOpening = false;
    if (!this.isClosed && document.visibilityState === "visible") this.connect();
  }

  private async reset(): Promise<void> {
    const seq = await this.listener.onReset();
    if (seq !== null) this.seq = seq;
  }

  private connect(): void {
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
    on("reset", () => void this.reset());
    on("end", () => {
      this.close();
      this.listener.onEnd();
    });
    this.awaitWord();
  }

  private heard(): void {
    this.heardAt = performance.now();
    this.awaitWord();
  }

  private awaitWord(): void {
    clearTimeout(this.silence);
    // Comments are not told to a page, so silence alone is no loss: the stream is quietly taken anew.
    this.silence = setTimeout(() => void this.open(), SILENCE_MS_MAX);
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
