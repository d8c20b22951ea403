// In a notebook, Python is told what is selected in the page, and may select rows itself.
import { json, post, type Chosen, type Result } from './api';

const POLL = 500; // ms

/** Take what Python selects; gives the function that tells it what is selected in the page. */
export function sharing(take: (result: Result | null) => void, failed: (error: unknown) => void): (chosen: Chosen | null) => void {
  let number = 0;
  let told = '';
  const ask = async (): Promise<void> => {
    const said = await json<{ number: number; result: Result | null }>('chosen');
    if (said.number !== number) {
      number = said.number;
      take(said.result);
    }
    setTimeout(again, POLL);
  };
  const again = (): void => void ask().catch(failed);
  again();
  return (chosen) => {
    const now = JSON.stringify(chosen);
    if (now !== told) void post('chosen', chosen ?? {}).catch(failed);
    told = now;
  };
}
