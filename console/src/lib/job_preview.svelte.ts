// Requests the preview of the job of the form: its problems, its start and its cost. A change is
// sent once typing pauses; answers of earlier requests are dropped.
import { ApiError, call } from './api';
import type { StartChange } from './explanation';
import { problemsOf, type Problem } from './job_problems';
import type { Cost } from './jobs';
import type { Request } from './repeat';

export interface Preview {
  StartsNow: boolean;
  StartTime?: number; // seconds since 1970
  WaitReason?: string;
  CostPerHour: Cost;
  CostAtMaxRuntime: Cost;
  Notes?: string[];
  Changes?: StartChange[];
  Complete?: boolean;
}

const PAUSE = 500; // milliseconds of typing
const BUSY_PAUSE = 3000; // until the next request after the server had too much to compute
const REFRESH = 15_000; // free capacity changes

export class JobPreview {
  preview = $state.raw<Preview>();
  problems = $state.raw<Problem[]>([]);
  asking = $state(false);

  private previewed: Request | undefined; // whose changes are in `preview`
  private timer: ReturnType<typeof setTimeout> | undefined;
  private abort: AbortController | undefined;

  constructor(private readonly region: string) {}

  // Sends the request soon. The earlier preview stays until the answer arrives.
  ask(request: Request): void {
    this.stop();
    this.asking = true;
    this.again(request, PAUSE);
  }

  stop(): void {
    clearTimeout(this.timer);
    this.abort?.abort();
  }

  private again(request: Request, pause: number): void {
    this.timer = setTimeout(() => {
      if (document.hidden) this.again(request, REFRESH);
      else void this.send(request);
    }, pause);
  }

  private async send(request: Request): Promise<void> {
    const abort = new AbortController();
    this.abort = abort;
    const input = { TrainingJobRequest: JSON.stringify(request) };
    const send = (more: object) =>
      call<Preview>(this.region, 'trainyard', 'PreviewJob', { ...input, ...more }, abort.signal);
    try {
      const found = await send({});
      if (abort.signal.aborted) return;
      // The changes take long to compute, so the start is shown first; later only the start is requested
      // again.
      const known = this.previewed === request && this.preview?.Changes;
      this.preview = found.StartsNow || !known ? found : { ...found, Changes: known };
      this.problems = [];
      this.asking = false;
      if (!found.StartsNow && !known) {
        const whole = await send({ WithChanges: true });
        if (abort.signal.aborted) return;
        this.preview = whole;
        this.previewed = request;
      }
      this.again(request, REFRESH);
    } catch (error) {
      if (abort.signal.aborted) return;
      const busy = !(error instanceof ApiError) || error.status >= 500 || error.code.startsWith('Throttling');
      if (busy) return this.again(request, BUSY_PAUSE);
      this.preview = undefined;
      this.problems = problemsOf(error.message);
      this.asking = false;
    }
  }
}
