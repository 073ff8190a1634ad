"""The current settings, and the user's on/off switch, which overrides them."""

import asyncio
import logging

import attrs
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from lsp_server.settings import SECTION, Settings, SettingsReading, read_settings

_logger = logging.getLogger(__name__)
_CONFIGURATION_TIMEOUT_S = 3.0


@attrs.define
class Configuration:
    """`initial` came with initialize. `toggled` outlives a change of the settings: off stays off."""

    settings: Settings = attrs.field(factory=Settings)
    initial: object = None
    toggled: dict[str | None, bool] = attrs.field(factory=dict)
    _reported: set[str] = attrs.field(factory=set)

    def begin(self, initial: object) -> None:
        """Use the settings that came with initialize. The first `update` reports what is wrong with them."""
        self.initial = initial
        self.settings = read_settings(initial).settings

    def update(self, layer: object) -> SettingsReading:
        """Read `layer` over the initial settings, and return the reading with only its new problems."""
        reading = read_settings(self.initial, layer)
        self.settings = reading.settings
        problems = tuple(line for line in reading.problems if line not in self._reported)
        unknown = tuple(name for name in reading.unknown if name not in self._reported)
        # A mistake that was corrected and made again is reported again.
        self._reported = {*reading.problems, *reading.unknown}
        return attrs.evolve(reading, problems=problems, unknown=unknown)

    def is_on(self, language: str | None = None) -> bool:
        """Return whether suggestions are on, in general or for the language with this id."""
        if not self.toggled.get(None, self.settings.enabled):
            return False
        return language is None or self.toggled.get(language, self.settings.languages.get(language, True))

    def toggle(self, language: str | None = None) -> bool:
        """Flip the switch of one language, or of all; return whether it is on now."""
        settings = self.settings
        default = settings.enabled if language is None else settings.languages.get(language, True)
        enabled = not self.toggled.get(language, default)
        self.toggled[language] = enabled
        return enabled


async def pulled_settings(server: LanguageServer) -> object:
    """Ask the editor for the settings. None if it does not answer, or has none."""
    params = types.ConfigurationParams([types.ConfigurationItem(section=SECTION)])
    pending = asyncio.ensure_future(server.workspace_configuration_async(params))
    # An editor that never answers must not keep the engine from starting.
    await asyncio.wait({pending}, timeout=_CONFIGURATION_TIMEOUT_S)
    if not pending.done():
        _logger.warning("the editor does not answer workspace/configuration; its settings are not used")
        return None
    try:
        answer = pending.result()
    except JsonRpcException as error:
        _logger.warning("the editor refused workspace/configuration (%d); its settings are not used", error.code)
        return None
    return answer[0] if answer else None
