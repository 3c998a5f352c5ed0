"""A card that is not there: tensors that lie in this machine's memory and believe that they are on ``"cuda:0"``.

Inside ``with PretendCard() as card`` torch has one card. What is made there is a :class:`CardTensor` around an ordinary
tensor, which does the work; every operation first goes through the rules that torch has for a real card, and fails where
a card would refuse:

* all tensors of an operation lie on the card, but for one number without dimension where the operation is one of
  torch's elementwise ones. Which these are says the list of operations that torch is generated from, and brings along;
* a tensor of the card may be indexed by one of this machine's memory, as torch sends that over; not the other way round;
* an operation without a program for cards, or without one for whole numbers (products of matrices), is refused;
* a tensor of the card is no NumPy array, and does not become one.

It counts what goes over, and can be full: the k-th piece of memory that is asked for is refused (``fails_at``).

What is not modelled: more than one card, streams, the order of sums on a card, its compiled programs, pinned memory,
operations that give a tensor other memory in place. Threads see the card where they belong to a pool.
"""

from __future__ import annotations

import ctypes
import os
import re
import weakref
from collections.abc import Iterator
from concurrent.futures.thread import _WorkItem
from contextlib import ExitStack, contextmanager
from functools import cache, wraps
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only

CARD = torch.device("cuda:0")
HERE = torch.device("cpu")
aten = torch.ops.aten

MIXES = {"_to_copy", "copy_", "copy", "_foreach_copy_"}  # what sends tensors over
INDEXES = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index", "_unsafe_index_put"}
MULTIPLIES = {"mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "vdot"}
RESIZES = {"resize_", "resize_as_", "set_"}


class CardTensor(torch.Tensor):
    """A tensor that says it is on the card; its values are those of an ordinary one."""

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> CardTensor:
        strided = inner.layout == torch.strided
        return torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride() if strided else None,
            storage_offset=inner.storage_offset() if strided else None,
            dtype=inner.dtype,
            device=CARD,
            layout=inner.layout,
            dispatch_layout=not strided,
        )

    def __init__(self, inner: torch.Tensor) -> None:
        self.inner = inner

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _PRESENT[-1].run(func, args, kwargs or {})

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
        )

    __array__ = numpy

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.dim() == 0 else super().__format__(spec)

    def __repr__(self) -> str:
        return f"{self.inner!r} on {CARD}"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _made, (self.inner,)

    def __deepcopy__(self, memo: dict[int, Any]) -> CardTensor:
        return memo.setdefault(id(self), self.clone())


def _made(inner: torch.Tensor) -> CardTensor:
    return _PRESENT[-1].wrapped(inner)


_PRESENT: list[PretendCard] = []


@contextmanager
def _guarded() -> Iterator[None]:
    """What torch calls before and after work on a card, which a build without cards lacks: that of this machine's memory.

    It does nothing. Its place is in a table of torch's library, which has no other way in.
    """
    library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libc10.so"))
    table = (ctypes.c_void_p * 2).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")  # of memory, of cards
    before, table[1] = table[1], table[0]
    try:
        yield
    finally:
        table[1] = before


class _Numbers(TorchFunctionMode):
    """``"cuda"`` is ``"cuda:0"``: torch asks the driver for the number, and a build without cards has none to ask."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.cuda:
            return args[0].to(CARD)
        named = {key: _numbered(value) for key, value in (kwargs or {}).items()}
        return func(*(_numbered(each) for each in args), **named)


def _numbered(value: Any) -> Any:
    if (isinstance(value, str) and value == "cuda") or (
        isinstance(value, torch.device) and value == torch.device("cuda")
    ):
        return CARD
    return value


class _Made(TorchDispatchMode):
    """What is made on the card goes through the card's rules, though no tensor of it takes part."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _PRESENT[-1].run(func, args, kwargs or {})


@contextmanager
def _seen() -> Iterator[None]:
    """Torch sees the card, in this thread."""
    with _Numbers(), _Made():
        yield


def _seeing(work: Any) -> Any:
    """The work of a thread of a pool, which sees the card too."""

    @wraps(work)
    def run(item: Any) -> None:
        with _seen():
            work(item)

    return run


class PretendCard:
    """The card, as long as it is entered.

    Parameters
    ----------
    total : int
        Bytes of its memory.
    fails_at : int, optional
        From which piece of memory on, counted from 0, all are refused until what torch keeps is given back.

    Attributes
    ----------
    copies : list of (str, int)
        ``"there"``, ``"back"`` or ``"number"`` (one number was asked for), and the bytes of each copy.
    pieces : int
        Pieces of memory that were asked for.
    """

    def __init__(self, total: int = 2**34, fails_at: int | None = None) -> None:
        self.total, self.fails_at = total, fails_at
        self.copies: list[tuple[str, int]] = []
        self.pieces, self._full = 0, False
        self._held: dict[int, tuple[int, int]] = {}  # by the place of the memory: its tensors, and its bytes

    def __enter__(self) -> PretendCard:
        self._stack = ExitStack()
        for name, value in self._cuda().items():
            self._stack.enter_context(mock.patch.object(torch.cuda, name, value))
        self._stack.enter_context(mock.patch.object(_WorkItem, "run", _seeing(_WorkItem.run)))
        self._stack.callback(torch._C._set_only_lift_cpu_tensors, torch._C._only_lift_cpu_tensors())
        torch._C._set_only_lift_cpu_tensors(True)  # so that torch.tensor(..., device=) comes by here
        self._stack.enter_context(_guarded())
        _PRESENT.append(self)
        self._stack.callback(_PRESENT.remove, self)
        self._stack.enter_context(_seen())
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()

    def allocated(self, device: Any = None) -> int:
        """Bytes that living tensors hold on the card."""
        return sum(size for _, size in self._held.values())

    def _hold(self, tensor: CardTensor) -> None:
        """Count the memory of a tensor as long as one that shares it lives."""
        for part in _parts(tensor.inner):
            place, size = part.untyped_storage().data_ptr(), part.untyped_storage().nbytes()
            if size:
                self._held[place] = self._held.get(place, (0, 0))[0] + 1, size
                weakref.finalize(tensor, self._let_go, place)

    def _let_go(self, place: int) -> None:
        users, size = self._held.pop(place)
        if users > 1:
            self._held[place] = users - 1, size

    def _emptied(self) -> None:
        self._full = False

    def _cuda(self) -> dict[str, Any]:
        """What torch says of cards while this one is there."""
        properties = SimpleNamespace(name="a pretend card", major=9, minor=0, total_memory=self.total)
        return {
            "_lazy_init": lambda: None,
            "init": lambda: None,
            "is_available": lambda: True,
            "is_initialized": lambda: True,
            "device_count": lambda: 1,
            "current_device": lambda: 0,
            "set_device": lambda device: None,
            "synchronize": lambda device=None: None,
            "empty_cache": self._emptied,
            "memory_allocated": self.allocated,
            "memory_reserved": self.allocated,
            "max_memory_allocated": self.allocated,
            "mem_get_info": lambda device=None: (self.total - self.allocated(), self.total),
            "get_device_name": lambda device=None: properties.name,
            "get_device_capability": lambda device=None: (properties.major, properties.minor),
            "get_device_properties": lambda device=None: properties,
        }

    def run(self, func: Any, args: Any, kwargs: Any) -> Any:
        """An operation on tensors of the card, of this machine's memory, or on none."""
        if func is torch.ops.prim.layout.default:
            return args[0].inner.layout
        flat = tree_flatten((args, kwargs))[0]
        tensors = [each for each in flat if isinstance(each, torch.Tensor)]
        asked = kwargs.get("device")
        there = any(isinstance(each, CardTensor) for each in tensors)
        to = there if asked is None else torch.device(asked).type == "cuda"
        if there or to:
            require(func, args, kwargs, tensors, to)
        kwargs = dict(kwargs, device=HERE) if asked is not None else kwargs
        inner_args, inner_kwargs = tree_map_only(CardTensor, lambda tensor: tensor.inner, (args, kwargs))
        found = func(*inner_args, **inner_kwargs)
        if there and torch.Tag.inplace_view in func.tags:
            with no_dispatch():  # the shape that the tensor says it has
                func(*args, **kwargs)
        self._count(func, tensors, found, to)
        mine = {id(tensor.inner): tensor for tensor in tensors if isinstance(tensor, CardTensor)}
        out = tree_map_only(torch.Tensor, lambda inner: mine.get(id(inner), inner), found)
        if not to:
            return out
        known = {part.untyped_storage().data_ptr() for t in mine.values() for part in _parts(t.inner)}
        return tree_map_only(
            torch.Tensor, lambda each: each if isinstance(each, CardTensor) else self.wrapped(each, known), out
        )

    def wrapped(self, inner: torch.Tensor, known: Any = ()) -> CardTensor:
        """The tensor on the card; one with memory of its own takes a piece of the card's."""
        if any(_bytes(part) and part.untyped_storage().data_ptr() not in known for part in _parts(inner)):
            self.pieces += 1
            self._full = self._full or self.pieces - 1 == self.fails_at
            if self._full or self.allocated() + _bytes(inner) > self.total:
                raise torch.OutOfMemoryError(
                    f"CUDA out of memory. Tried to allocate {max(1, _bytes(inner) // 2**20)}.00 MiB. GPU 0 has a total "
                    f"capacity of {self.total / 2**30:.2f} GiB of which 0 bytes is free."
                )
        tensor = CardTensor(inner)
        self._hold(tensor)
        return tensor

    def _count(self, func: Any, tensors: list[Any], found: Any, to: bool) -> None:
        name = _name(func)
        if name == "_local_scalar_dense":
            self.copies.append(("number", tensors[0].element_size()))
        elif name in MIXES:
            source = tensors[-1]
            from_card = isinstance(source, CardTensor)
            goal = to if name == "_to_copy" else isinstance(tensors[0], CardTensor)
            if from_card != goal:
                self.copies.append(("back" if from_card else "there", source.numel() * source.element_size()))


def _parts(inner: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The dense tensors that a tensor is made of."""
    if inner.layout == torch.strided:
        return (inner,)
    if inner.layout == torch.sparse_coo:
        return inner._indices(), inner._values()
    if inner.layout == torch.sparse_csc:
        return inner.ccol_indices(), inner.row_indices(), inner.values()
    return inner.crow_indices(), inner.col_indices(), inner.values()


def _bytes(inner: torch.Tensor) -> int:
    return sum(part.untyped_storage().nbytes() for part in _parts(inner))


# --- the rules of a card ----------------------------------------------------------------------------------------------


def require(func: Any, args: Any, kwargs: Any, tensors: list[torch.Tensor], to: bool) -> None:
    """RuntimeError, or NotImplementedError, where torch would refuse this operation for tensors of a card."""
    name = _name(func)
    generator = kwargs.get("generator")
    if to and generator is not None and generator.device != CARD:
        raise RuntimeError(f"Expected a 'cuda' device type for generator but found '{generator.device.type}'")
    if name in MIXES or name == "_local_scalar_dense":
        return
    if name in RESIZES:
        raise NotImplementedError(f"The pretend card does not model {name}, which gives a tensor other memory.")
    if name in INDEXES:
        _require_indices(args)
    else:
        _require_one_device(func, tensors)
    dense = all(tensor.layout == torch.strided for tensor in tensors)
    rule = rules().get(_name(func, overload=True))
    if dense and rule is not None and not rule.on_cards:
        raise NotImplementedError(f"Could not run '{func._schema.name}' with arguments from the 'CUDA' backend.")
    if name in MULTIPLIES and not tensors[0].dtype.is_floating_point:
        raise RuntimeError(f'"{name}_cuda" not implemented for {tensors[0].dtype}')
    if name == "linalg_lstsq" and ((len(args) > 3 and args[3]) or kwargs.get("driver")) not in (None, False, "gels"):
        raise RuntimeError("torch.linalg.lstsq: parameter `driver` should be one of (gels) on a card")


def _require_indices(args: Any) -> None:
    """Indices may come from this machine's memory to the card, and a value that is one number from either side."""
    self, indices, *rest = args
    there = isinstance(self, CardTensor)
    if not there and any(isinstance(index, CardTensor) for index in indices):
        raise RuntimeError("indices should be either on cpu or on the same device as the indexed tensor (cpu)")
    value = rest[0] if rest else None
    if isinstance(value, torch.Tensor) and value.dim() and isinstance(value, CardTensor) != there:
        raise _two_devices("index_put_")


def _require_one_device(func: Any, tensors: list[torch.Tensor]) -> None:
    strangers = [tensor for tensor in tensors if not isinstance(tensor, CardTensor)]
    if not strangers or len(strangers) == len(tensors):
        return
    name = _name(func, overload=True)
    rule = rules().get(name)
    elementwise = rule is not None and not rule.checked
    written = func._schema.is_mutable and not isinstance(tensors[0 if _name(func).endswith("_") else -1], CardTensor)
    if not elementwise or written or len(strangers) > 1 or strangers[0].dim():
        raise _two_devices(name)


def _two_devices(name: str) -> RuntimeError:
    return RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! ({name})"
    )


def _name(func: Any, *, overload: bool = False) -> str:
    name = func._schema.name.partition("::")[2]
    return f"{name}.{func._schema.overload_name}" if overload and func._schema.overload_name else name


@cache
def rules() -> dict[str, SimpleNamespace]:
    """Of every operation by its name: whether all its tensors must be on one device, whether cards have a program for it."""
    import torchgen

    path = os.path.join(os.path.dirname(torchgen.__file__), "packaged", "ATen", "native", "native_functions.yaml")
    with open(path) as file:
        entries = re.split(r"^- func: ", file.read(), flags=re.MULTILINE)[1:]
    found = {}
    for entry in entries:
        dispatch = re.search(r"^  dispatch:\n((?:    .*\n|\s*#.*\n)+)", entry, re.MULTILINE)
        keys = re.findall(r"^    ([\w, ]+):", dispatch[1], re.MULTILINE) if dispatch else []
        names = {key.strip() for line in keys for key in line.split(",")}
        on_cards = not names or "structured" in entry or any("Composite" in n or n == "CUDA" for n in names)
        found[entry.partition("(")[0]] = SimpleNamespace(
            checked="device_check: NoCheck" not in entry, on_cards=on_cards
        )
    return found
