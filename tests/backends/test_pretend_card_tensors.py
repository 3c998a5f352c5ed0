"""The pretend card refuses what a card refuses, and nothing else: a check that cannot fail would be none."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from pretend_card import CARD, CardTensor, PretendCard  # noqa: E402

TWO = "Expected all tensors to be on the same device"
SENT = "can't convert cuda:0 device type tensor to numpy"


@pytest.fixture
def there(pretend_card):
    """Six numbers on the card."""
    return torch.arange(6.0, device="cuda", dtype=torch.float64).reshape(3, 2)


HERE = torch.ones(3, 2, dtype=torch.float64)
MISTAKES = {
    "sum": lambda x: x + HERE,
    "sum from here": lambda x: HERE + x,
    "sum in place": lambda x: x.add_(HERE),
    "sum in place, from here": lambda x: HERE.clone().add_(x),
    "product of matrices": lambda x: x.T @ HERE,
    "joined": lambda x: torch.cat([x, HERE]),
    "stacked": lambda x: torch.stack([x, HERE]),
    "choice": lambda x: torch.where(x > 1, x, HERE),
    "mask of another device": lambda x: x.masked_fill(HERE > 0, 1.0),
    "rows by index_select": lambda x: x.index_select(0, torch.tensor([0])),
    "gathered": lambda x: x.gather(0, torch.zeros(1, 2, dtype=torch.int64)),
    "added by index": lambda x: x.index_add_(0, torch.tensor([0]), x[:1].clone()),
    "written by index": lambda x: x.index_put_((torch.tensor([0], device=x.device),), HERE[:1]),
    "searched": lambda x: torch.searchsorted(x[:, 0].contiguous(), HERE[:, 0].contiguous()),
    "counted": lambda x: torch.bincount(torch.tensor([0, 1]), x[:2, 0]),
    "solved": lambda x: torch.linalg.solve_triangular(HERE[:2], x[:2], upper=True),
    "repeated": lambda x: torch.repeat_interleave(x[:, 0], torch.tensor([1, 2, 1])),
    "two numbers of this memory": lambda x: torch.addcmul(x, HERE[0, 0], HERE[0, 1]),
    "a number, in a product of matrices": lambda x: torch.dot(x[0], torch.ones(2, dtype=torch.float64)),
    "a number of the card in an array of this memory": lambda x: HERE * x[0, 0],
    "into an array of this memory": lambda x: torch.add(x, x, out=torch.empty(3, 2, dtype=torch.float64)),
    "made without a device": lambda x: x * torch.arange(2.0, dtype=torch.float64),
    "made of NumPy's": lambda x: x - torch.as_tensor(np.ones(2)),
    "in a thread of a pool": lambda x: ThreadPoolExecutor(1).submit(lambda: x + HERE).result(),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_tensors_of_two_devices_do_not_meet(name, there):
    with pytest.raises(RuntimeError, match=TWO):
        MISTAKES[name](there)


@pytest.mark.parametrize("name", MISTAKES)
def test_in_this_machines_memory_none_of_these_is_a_mistake(name, pretend_card):
    """So it is the card that refuses them."""
    assert MISTAKES[name](torch.arange(6.0, dtype=torch.float64).reshape(3, 2)).device.type == "cpu"


@pytest.mark.parametrize(
    "convert", [np.asarray, np.array, np.sqrt, lambda x: x.numpy(), lambda x: np.ones(3) @ np.asarray(x)]
)
def test_no_tensor_of_the_card_becomes_an_array(convert, there):
    with pytest.raises(TypeError, match=SENT):
        convert(there)


def test_an_index_of_the_card_finds_nothing_in_this_machines_memory(there):
    with pytest.raises(RuntimeError, match="indices should be either on cpu or on the same device"):
        HERE[torch.tensor([0], device="cuda")]
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator"):
        torch.randn(2, generator=torch.Generator(), device="cuda")


def test_what_cards_cannot_do_is_refused(there):
    whole = torch.ones(2, 2, dtype=torch.int64, device="cuda")
    with pytest.raises(RuntimeError, match="not implemented for torch.int64"):
        whole @ whole
    with pytest.raises(NotImplementedError, match="'CUDA' backend"):
        torch.histogram(there[:, 0].contiguous(), 3)
    with pytest.raises(RuntimeError, match="driver"):
        torch.linalg.lstsq(there, there, driver="gelsd")
    with pytest.raises(NotImplementedError, match="does not model resize_"):
        there.clone().resize_(7)


def test_what_torch_sends_over_by_itself(there):
    """A number without dimension, indices of this memory, and what is copied into a part."""
    one = torch.tensor(2.0, dtype=torch.float64)
    for found in (
        there * one,
        one * there,
        there[torch.tensor([2, 0])],
        there[np.array([1])],
        there[[0, 1]],
        2 * there,
    ):
        assert found.device == CARD
    there[0] = torch.ones(2, dtype=torch.float64)
    there[torch.tensor([1])] = one
    there[there > 4] = 0.0
    assert there.tolist() == [[1.0, 1.0], [2.0, 2.0], [4.0, 0.0]]


def test_views_share_their_memory_and_shapes_follow(there):
    row, column = there[1], there.T[0]
    row += 10
    column.mul_(2)
    assert there.tolist() == [[0.0, 1.0], [24.0, 13.0], [8.0, 5.0]]
    assert there.unsqueeze(0).squeeze_(0).shape == (3, 2)
    assert (torch.ones(3, device="cuda", dtype=torch.float64) @ there).shape == (2,)
    out = torch.empty(3, 3, device="cuda", dtype=torch.float64)
    assert torch.matmul(there, there.T, out=out) is out
    assert bool((out == there @ there.T).all())


def test_values_come_back_when_asked_for(there):
    assert type(there.cpu()) is torch.Tensor
    assert type(there.to("cpu")) is torch.Tensor
    assert (float(there[1, 1]), int(there[2, 0]), f"{there[0, 1]:.1f}") == (3.0, 4, "1.0")
    assert bool((there >= 0).all())
    assert [float(part) for part in there[2]] == [4.0, 5.0]
    for twin in (copy.deepcopy(there), pickle.loads(pickle.dumps(there))):
        assert isinstance(twin, CardTensor)
        assert torch.equal(twin, there)


def test_whatever_is_made_there_lies_there(there):
    made = [
        *(make(2, 2, device="cuda") for make in (torch.zeros, torch.ones, torch.empty, torch.rand, torch.randn)),
        *(torch.full((2,), 1.0, device="cuda:0"), torch.eye(2, device=CARD), torch.arange(2, device=there.device)),
        *(torch.tensor([1.0], device="cuda"), torch.as_tensor(np.ones(2), device="cuda"), HERE.to("cuda"), HERE.cuda()),
        *(
            there.new_zeros(2),
            torch.zeros_like(there),
            torch.empty_like(HERE, device="cuda"),
            there.float(),
            *there.split(1),
        ),
        *(*torch.linalg.eigh(there.T @ there), *torch.unique(there, return_inverse=True), there.nonzero()),
    ]
    assert {tensor.device for tensor in made} == {CARD}
    assert all(isinstance(tensor, CardTensor) for tensor in made)
    assert torch.zeros(2).device.type == there.new_zeros(2, device="cpu").device.type == "cpu"


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
def test_sparse_rows(there):
    sparse = torch.sparse_csr_tensor(
        *(torch.tensor(part, device="cuda") for part in ([0, 1, 2], [1, 0], [2.0, 3.0])), (2, 2), check_invariants=False
    )
    assert (sparse.layout, sparse.device) == (torch.sparse_csr, CARD)
    assert (sparse @ torch.eye(2, device="cuda")).tolist() == [[0.0, 2.0], [3.0, 0.0]]
    assert {part.device for part in (sparse.values(), sparse.crow_indices(), sparse.to_dense())} == {CARD}
    with pytest.raises(RuntimeError, match=TWO):
        sparse @ torch.eye(2)


def test_copies_and_memory_are_counted(pretend_card):
    assert pretend_card.allocated() == 0
    there = torch.ones(4, device="cuda", dtype=torch.float64) * 2
    part, twice = there[:2], torch.as_tensor(np.ones(3), device="cuda")
    assert pretend_card.allocated() == torch.cuda.memory_allocated() == 32 + 24
    pretend_card.copies.clear()
    assert (part.sum().item(), twice.cpu().shape) == (4.0, (3,))
    torch.zeros(5).to("cuda")
    assert pretend_card.copies == [("number", 8), ("back", 24), ("there", 20)]
    del there, part, twice
    assert pretend_card.allocated() == 0


def test_a_card_that_is_full_says_so():
    with PretendCard(total=100, fails_at=1) as card:
        first = torch.zeros(2, device="cuda")
        with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate"):
            torch.zeros(2, device="cuda")
        with pytest.raises(torch.OutOfMemoryError):
            torch.zeros(2, device="cuda")
        torch.cuda.empty_cache()
        again = torch.zeros(2, device="cuda")
        assert (card.pieces, first.shape, again.shape) == (4, (2,), (2,))
        with pytest.raises(torch.OutOfMemoryError):
            torch.zeros(30, device="cuda")


def test_the_card_goes_when_it_is_left():
    before = torch.cuda.is_available()
    with PretendCard():
        assert torch.cuda.is_available()
        assert torch.cuda.device_count() == 1
    assert torch.cuda.is_available() is before
    if not before:
        with pytest.raises((RuntimeError, AssertionError)):
            torch.zeros(2, device="cuda")
