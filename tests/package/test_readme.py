"""The README's example runs as it is printed."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.skipif(not README.is_file(), reason="installed without the repository's README")
def test_example_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len(blocks) == 1
    names: dict[str, object] = {}
    exec(blocks[0], names)
    assert "Certified optimal" in capsys.readouterr().out
    assert names["coordinates"].shape[0] == names["scores"].shape[0] == names["kernel"].shape[0]
