"""Methods: arguments into parameters, values into results, built where they will be sent from."""

from typing import final

from capnwire._info import StructInfo

@final
class Method:
    """A method of an interface.

    `names` are those of the parameters and of the results, in the order of their declaration.
    """

    def __init__(
        self, name: str, interface_name: str, interface_id: int, method_id: int,
        params: StructInfo, results: StructInfo, *, streaming: bool,
        parameter_names: tuple[str, ...], result_names: tuple[str, ...], named_params: bool,
        results_hold_capabilities: bool,
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def interface_name(self) -> str: ...
    @property
    def interface_id(self) -> int: ...
    @property
    def method_id(self) -> int: ...
    @property
    def params(self) -> StructInfo: ...
    @property
    def results(self) -> StructInfo: ...
    @property
    def streaming(self) -> bool: ...
    @property
    def parameter_names(self) -> tuple[str, ...]: ...
    @property
    def result_names(self) -> tuple[str, ...]: ...
    @property
    def named_params(self) -> bool: ...
    @property
    def results_hold_capabilities(self) -> bool: ...

__test__: dict[str, str]
