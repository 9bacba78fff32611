"""Imports at run time: a value by its reference, a module when it is first used."""

import gc
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from types import ModuleType
from typing import Any


def import_reference(import_path: str) -> Any:
    """Import the module of `package.module:name` and return what the name stands for in it.

    Raise `ImportError` or `AttributeError` when there is no such thing.
    """
    module_name, _, value_name = import_path.partition(":")
    with pause_garbage_collection():
        # Not `pkgutil.resolve_name`: importing pkgutil takes longer than all of this.
        return reduce(getattr, value_name.split("."), importlib.import_module(module_name))


class LazyModule(ModuleType):
    """A module that is imported when something of it is first used.

    It stands where an import would, for what a start of the program costs but few requests need.
    The import itself stands beside it, for readers and checkers of types.
    """

    def __getattr__(self, name: str) -> Any:
        with pause_garbage_collection():
            module = importlib.import_module(self.__name__)
        # From now on, names are found here as quickly as in the module itself.
        self.__dict__.update(module.__dict__)
        return getattr(module, name)


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Collect no garbage while modules are imported, and never look for any in them later.

    Modules stay until the process ends, so a collection finds nothing in them: those during the
    imports would take a tenth of the whole time, and each full one afterwards would walk through
    all of them again.
    """
    if not gc.isenabled():
        yield
        return
    module_count = len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > module_count:
            gc.freeze()
        gc.enable()
