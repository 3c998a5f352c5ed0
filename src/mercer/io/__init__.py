"""Files: tables of numbers and categories, read and written, and models."""

from mercer.backends.fingerprint import fingerprint
from mercer.io.data_table import DataColumn, DataTable, UnknownColumnError
from mercer.io.model_file import describe, load, save
from mercer.io.preparation import Preparation
from mercer.io.read import read_table
from mercer.io.refusals import ModelFileError, UnsavableError
from mercer.io.row_sources import open_rows
from mercer.io.write import write_table
from mercer.io.write_rows import write_rows

__all__ = [
    "DataColumn",
    "DataTable",
    "ModelFileError",
    "Preparation",
    "UnknownColumnError",
    "UnsavableError",
    "describe",
    "fingerprint",
    "load",
    "open_rows",
    "read_table",
    "save",
    "write_rows",
    "write_table",
]
