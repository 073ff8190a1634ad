"""The settings as they are now, and the user's on/off switch over them."""

import attrs

from lsp_server.settings import Reading, Settings, read_settings


@attrs.define
class Configuration:
    """`initial` came with initialize. What is `toggled` outlives a change of the settings: off stays off."""

    settings: Settings = attrs.field(factory=Settings)
    initial: object = None
    toggled: dict[str | None, bool] = attrs.field(factory=dict)
    _told: set[str] = attrs.field(factory=set)

    def begin(self, initial: object) -> None:
        """Take the settings that came with initialize. What is wrong with them is told by the first `update`."""
        self.initial = initial
        self.settings = read_settings(initial).settings

    def update(self, layer: object) -> Reading:
        """Read `layer` over the initial settings; return the reading with only those problems that are new."""
        reading = read_settings(self.initial, layer)
        self.settings = reading.settings
        problems = tuple(line for line in reading.problems if line not in self._told)
        unknown = tuple(name for name in reading.unknown if name not in self._told)
        # A mistake that was mended and made again is told again.
        self._told = {*reading.problems, *reading.unknown}
        return attrs.evolve(reading, problems=problems, unknown=unknown)

    def is_on(self, language: str | None = None) -> bool:
        """Return whether suggestions are on: at all, or for the language of this id."""
        if not self.toggled.get(None, self.settings.enabled):
            return False
        return language is None or self.toggled.get(language, self.settings.languages.get(language, True))

    def toggle(self, language: str | None = None) -> bool:
        """Turn the switch of all languages, or that of one, over; return whether that one is on now."""
        settings = self.settings
        default = settings.enabled if language is None else settings.languages.get(language, True)
        turned = not self.toggled.get(language, default)
        self.toggled[language] = turned
        return turned
