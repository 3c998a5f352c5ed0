"""The command as a process: on a terminal, in a pipe, interrupted, and asked by a shell at the tab key."""

import fcntl
import io
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time

import numpy as np
import pytest
from rich.console import Console

from mercer.cli import progress

COMMAND = [sys.executable, "-m", "mercer"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
PATIENCE = 120.0  # seconds after which a process hangs


@pytest.fixture
def roll(tmp_path):
    """A rolled-up sheet, of which a Gaussian kernel of small width takes an interior-point method some seconds to embed."""
    rng = np.random.default_rng(0)
    t = rng.uniform(4, 14, 1000)
    rows = np.column_stack([t * np.cos(t), rng.uniform(0, 20, t.size), t * np.sin(t)])
    np.savetxt(tmp_path / "roll.csv", rows, delimiter=",", header="x,y,z", comments="")
    return tmp_path


class Terminal:
    """A process on a terminal of its own, with a keyboard and a screen."""

    def __init__(self, arguments, folder, columns):
        self._keyboard, screen = pty.openpty()
        fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {name: value for name, value in ENVIRONMENT.items() if name not in ("COLUMNS", "LINES")}
        self._process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=screen,
            stdout=screen,
            stderr=screen,
            cwd=folder,
            env={**environment, "TERM": "xterm-256color"},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(screen)
        self.shown = ""

    def wait_for(self, words):
        """Read the screen until the words stand there, or until the process ends if there are none."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if words and re.search(words, self.shown):
                return
            if select.select([self._keyboard], [], [], 0.1)[0]:
                try:
                    piece = os.read(self._keyboard, 65536)
                except OSError:  # the process has closed its side
                    piece = b""
                if not piece:
                    assert not words, f"{words!r} was not seen before the end: {self.shown[-2000:]}"
                    return
                self.shown += piece.decode(errors="replace")
        pytest.fail(f"{words!r} was not seen in {PATIENCE} seconds: {self.shown[-2000:]}")

    def press(self, key):
        os.write(self._keyboard, key)

    def ended(self):
        self.wait_for("")
        os.close(self._keyboard)
        return self._process.wait(PATIENCE)


def test_a_terminal_shows_a_bar_and_ctrl_c_keeps_a_checkpoint_that_another_call_goes_on_from(roll, monkeypatch, told):
    terminal = Terminal(["embed", "roll.csv", "--sigma", "0.5", "--no-picture"], roll, columns=200)
    terminal.wait_for(r"interior-point method[^\r]*step \d+, residual \S+, gap")  # which runs for seconds
    assert "\x1b[" in terminal.shown  # a bar that is drawn over and over
    assert re.search(r"Solving the semi-definite programme: \w+", terminal.shown)  # the phase
    terminal.press(b"\x03")
    assert terminal.ended() == 130, terminal.shown[-2000:]
    assert "Traceback" not in terminal.shown
    said = " ".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.shown).split())
    assert "interrupted" in said
    assert "Ctrl-C again leaves at once" in said  # at the key, before the proof of what was found
    assert re.search(r"Certificate \S.*gap|Certificate Certified", said)  # of the best iterate, honest
    assert "Kept roll.checkpoint.npz, the best iterate so far" in said
    again = re.search(r"Go on (mercer embed .*?--checkpoint roll.checkpoint.npz)", said)[1]
    assert sorted(path.name for path in roll.iterdir()) == ["roll.checkpoint.npz", "roll.csv"]
    words = shlex.split(again)[1:]
    monkeypatch.chdir(roll)
    assert told(*words)["certificate"]["relative_gap"] <= 1e-6


@pytest.mark.parametrize("columns", [80, 200])
def test_nothing_that_matters_is_cut_on_any_terminal(columns):
    screen = Console(file=io.StringIO(), force_terminal=True, width=columns)
    with progress._bar(screen) as bar:
        shown = progress._Bar(bar, "Solving the semi-definite programme")
        shown.show(phase="solving by the interior-point method")
        shown.show(0.5, "level 2, step 103, residual 1e-06, certified gap 5e-07")
        bar.refresh()
    said = " ".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.file.getvalue()).split())
    assert "…" not in said
    for word in (
        "interior-point method",
        "level 2",
        "step 103",
        "residual",
        "1e-06",
        "certified",
        "5e-07",
        "about 0 s left",
    ):
        assert word in said


def test_ctrl_c_before_there_is_anything_to_keep_says_so(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with (
        subprocess.Popen([*COMMAND, "embed", "pipe"], cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE) as process,
        (tmp_path / "pipe").open("wb", buffering=0),
    ):  # waits until the command has opened the other end
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert said == b"Interrupted: nothing was written.\n"


def test_a_reader_that_has_read_enough_ends_nothing_in_tears(tmp_path):
    """Rows beyond what a pipe holds, of which head takes two; pipefail makes the code of the line that of the command."""
    rows = np.random.default_rng(0).random((3000, 9))
    np.savetxt(tmp_path / "a.csv", rows, delimiter=",", header=",".join("abcdefghi"), comments="")
    mercer = shlex.join(COMMAND)
    line = f"set -o pipefail; {mercer} embed a.csv --method diffusion --landmarks 50 --components 9 --sigma 1 -o - --quiet | head -2"
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 2


def test_a_pipe_sees_plain_lines_with_phase_gap_and_time_left(folder, call, monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN", 0.0)
    result = call("embed", "iris.csv", "--json")
    lines = result.stderr.splitlines()
    assert result.exit_code == 0
    assert lines[0] == "Solving the semi-definite programme …"
    assert "\x1b" not in result.stderr
    assert any(re.search(r": climbing by .*, \d+%, step \d+, residual \S+, about \d+ s left$", line) for line in lines)
    assert any(": proving the bound" in line for line in lines)
    assert any(re.search(r"certified gap \d", line) for line in lines)
    assert any("level 2" in line for line in lines)
    assert call("embed", "iris.csv", "--json", "--quiet").stderr == ""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("mercer em", {"embed"}),
        ("mercer embed iris.csv --kern", {"--kernel"}),
        ("mercer embed iris.csv --kernel ga", {"gaussian"}),
        ("mercer embed iris.csv --label sp", {"species"}),
        (
            "mercer embed iris.csv --columns sepal_length,petal",
            {"sepal_length,petal_length", "sepal_length,petal_width"},
        ),
        ("mercer completion ", {"bash", "fish", "zsh"}),
    ],
)
def test_the_tab_key(words, expected, folder):
    """What bash would ask, and what it would be told."""
    count = len(shlex.split(words)) - (0 if words.endswith(" ") else 1)
    asked = {"_MERCER_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(count)}
    done = subprocess.run(COMMAND, env={**ENVIRONMENT, **asked}, capture_output=True, text=True, check=False)
    assert {line.partition(",")[2] for line in done.stdout.splitlines()} == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(shell, call):
    script = call("completion", shell)
    assert script.exit_code == 0
    assert f"_MERCER_COMPLETE={shell}_complete" in script.stdout
    assert "mercer" in script.stdout


def test_bash_takes_the_script():
    script = subprocess.run([*COMMAND, "completion", "bash"], capture_output=True, text=True, check=True).stdout
    done = subprocess.run(["bash", "-c", f"{script}\ncomplete -p mercer"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "mercer" in done.stdout
