"""What compiled loops need and numba lacks: matrix products by BLAS, counters that threads share, and bit patterns.

The addresses of ``dgemm`` and ``sgemm`` come from the table that SciPy publishes for Cython and are handed to a
compiled loop as numbers, so that the loop can be cached on disk. A call takes no lock of the interpreter; callers
from several threads hold BLAS to one thread each (:func:`mercer.backends.threads.single_threaded_blas`).
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import get_cython_function_address, intrinsic

_BYTE, _LONG = ir.IntType(8), ir.IntType(64)


@cache
def gemm_address(name: str) -> int:
    """Where the matrix product of a precision lies, "float32" or "float64"."""
    return int(get_cython_function_address("scipy.linalg.cython_blas", {"float32": "sgemm", "float64": "dgemm"}[name]))


@cache
def yield_address() -> int:
    """Where the function lies by which a thread lets others run; zero on systems without it."""
    if not hasattr(os, "sched_yield"):
        return 0
    return int(ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value or 0)


_builtin: Any = intrinsic  # whose type hints count the context among the arguments of a call


def _bitcast(source: Any, target: Any) -> Any:
    @intrinsic
    def cast(typingctx: Any, x: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], context.get_value_type(target))

        return target(source), codegen

    return cast


bits32, float32_of = _bitcast(types.float32, types.int32), _bitcast(types.int32, types.float32)
bits64, float64_of = _bitcast(types.float64, types.int64), _bitcast(types.int64, types.float64)


@_builtin
def gemm(  # type: ignore[no-untyped-def]
    typingctx, address, trans_a, trans_b, m, n, k, a, start_a, lda, b, start_b, ldb, c, start_c, ldc
):
    """C = op(A) op(B) in BLAS's column order, in contiguous arrays from given entries on; trans is "N" or "T" by ord.

    Entries are counted in numbers and not given by views, which would touch reference counters that threads share.

    Integers are handed over in eight bytes: BLAS reads four or eight of them, on a little-endian machine the same
    number.
    """
    real = a.dtype

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = context.get_value_type(real)
        kinds = signature.args

        def here(x: Any) -> Any:
            return cgutils.alloca_once_value(builder, x)

        def data(position: int) -> Any:
            start = context.cast(builder, args[position + 1], kinds[position + 1], types.int64)
            return builder.gep(context.make_array(kinds[position])(context, builder, args[position]).data, [start])

        def long(position: int) -> Any:
            return here(context.cast(builder, args[position], kinds[position], types.int64))

        def letter(position: int) -> Any:
            return here(builder.trunc(context.cast(builder, args[position], kinds[position], types.int64), _BYTE))

        one, zero = here(ir.Constant(value, 1.0)), here(ir.Constant(value, 0.0))
        i8, i64, real_p = _BYTE.as_pointer(), _LONG.as_pointer(), value.as_pointer()
        order = [i8, i8, i64, i64, i64, real_p, real_p, i64, real_p, i64, real_p, real_p, i64]
        kind = ir.FunctionType(ir.VoidType(), order)
        function = builder.inttoptr(context.cast(builder, args[0], kinds[0], types.int64), kind.as_pointer())
        shapes = [letter(1), letter(2), long(3), long(4), long(5)]
        builder.call(function, [*shapes, one, data(6), long(8), data(9), long(11), zero, data(12), long(14)])
        return context.get_dummy_value()

    return types.void(address, trans_a, trans_b, m, n, k, a, start_a, lda, b, start_b, ldb, c, start_c, ldc), codegen


@_builtin
def let_others_run(typingctx, address):  # type: ignore[no-untyped-def]
    """Call the function at an address, which takes nothing and whose answer is not used."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


def _element(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, args[0])
    index = context.cast(builder, args[1], signature.args[1], types.int64)
    return builder.gep(array.data, [index])


@_builtin
def atomic_add(typingctx, array, index, value):  # type: ignore[no-untyped-def]
    """Add to an entry of an array of integers that several threads share; return what stood there before."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        added = context.cast(builder, args[2], signature.args[2], types.int64)
        return builder.atomic_rmw("add", _element(context, builder, signature, args), added, "seq_cst")

    return types.int64(array, index, value), codegen


@_builtin
def atomic_read(typingctx, array, index):  # type: ignore[no-untyped-def]
    """An entry of an array of integers that other threads may be changing, with all they wrote before it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_element(context, builder, signature, args), "seq_cst", 8)

    return types.int64(array, index), codegen
