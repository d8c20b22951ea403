"""What a process does after Ctrl-C."""

import os
import resource
import signal
from pathlib import Path


def work_after_ctrl_c(process):
    """Send SIGINT to a process of Linux, and wait for its end.

    Gives the seconds of processor time that it took after the signal, which do not depend on what
    else the machine does, and what it printed and said.
    """
    ticks = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    before = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    of_others = _of_ended_children()
    process.send_signal(signal.SIGINT)
    printed, said = process.communicate(timeout=120)
    return _of_ended_children() - of_others - before, printed, said


def _of_ended_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
