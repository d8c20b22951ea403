"""The shell from key to result, on a terminal that does not exist."""

import os
import signal
import threading

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import spatialq
from spatialq.cli.shell.prompt import run_in_terminal
from spatialq.cli.shell.session import Session

CTRL_C, CTRL_D = "\x03", "\x04"


@pytest.fixture
def typed(monkeypatch, tmp_path):
    """Run keys in a session; its connection stays open."""
    monkeypatch.setenv("SPATIALQ_CACHE_DIR", str(tmp_path))
    with spatialq.connect() as con:
        session = Session(con, limit=20)

        def run(keys):
            with create_pipe_input() as keyboard:
                keyboard.send_text(keys)
                run_in_terminal(session, input=keyboard, output=DummyOutput())
            return session

        run.con = con
        yield run


def test_lines_until_a_semicolon_and_the_history(typed, capsys, tmp_path):
    session = typed(f"SELECT 41\r+ 1 AS answer;\rSELEC;\r{CTRL_D}")
    captured = capsys.readouterr()
    assert "answer" in captured.out
    assert "42" in captured.out
    assert captured.err.startswith("error: Catalog Error: Table with name SELEC does not exist")
    assert session.failed
    assert "+SELECT 41\n++ 1 AS answer;" in (tmp_path / "shell_history").read_text()


def test_ctrl_c_drops_what_was_typed(typed, capsys):
    typed(f"SELECT 1 AS dropped{CTRL_C}SELECT 2 AS kept;\r{CTRL_D}")
    out = capsys.readouterr().out
    assert "kept" in out
    assert "dropped" not in out


def test_tab_completes(typed, capsys):
    typed(f"CREATE TABLE observations (a INT);\rFROM observ\t;\r{CTRL_D}")
    assert "(no rows)" in capsys.readouterr().out


def test_quit(typed, capsys):
    typed("SELECT 1 AS one;\r.quit\rSELECT 2 AS two;\r")
    out = capsys.readouterr().out
    assert "one" in out
    assert "two" not in out


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
@pytest.mark.slow
def test_ctrl_c_stops_what_runs_and_keeps_the_shell(typed, capsys):
    begun = threading.Event()

    def begin(number):
        begun.set()
        return number

    def interrupt():
        if begun.wait(60):
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    typed.con.create_function("begin", begin, ["BIGINT"], "BIGINT", side_effects=True)
    killer = threading.Thread(target=interrupt)
    killer.start()
    endless = (
        "SELECT count(*) FROM range(1_000_000_000_000) AS r(i) "
        "WHERE if(i = 0, begin(i), i) % 7 = 8;"
    )
    typed(f"{endless}\rSELECT 41 + 1 AS answer;\r{CTRL_D}")
    killer.join()
    captured = capsys.readouterr()
    assert captured.err == "interrupted\n"
    assert "42" in captured.out
    assert signal.getsignal(signal.SIGINT) == before
