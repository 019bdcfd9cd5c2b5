"""A list of lines of which only those on the screen are drawn, with a cursor that follows its line."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

_CURSOR = Style(reverse=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    text: Text
    """Text as it is: never markup."""
    key: str = ""
    """Key of the thing that the line shows; if empty, the cursor cannot follow the line."""


class LineList(ScrollView, can_focus=True):
    """Two thousand lines cost what twenty cost: a line is drawn when it is seen.

    Args:
        id: Of the widget.
        has_cursor: Without one the keys scroll.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "move_page(-1)", show=False),
        Binding("pagedown", "move_page(1)", show=False),
        Binding("home", "move_to_end(-1)", show=False),
        Binding("end", "move_to_end(1)", show=False),
        Binding("enter", "choose", show=False),
    ]

    class Moved(Message):
        """The cursor is on another line, or that line says something else."""

    class Chosen(Message):
        """The line under the cursor was chosen."""

    def __init__(self, *, id: str, has_cursor: bool = True) -> None:  # noqa: A002  Textual's name
        super().__init__(id=id)
        self._lines: Sequence[Line] = ()
        self._has_cursor = has_cursor
        self._cursor = 0

    @property
    def lines(self) -> Sequence[Line]:
        return self._lines

    @property
    def selected(self) -> str:
        """Key of the line under the cursor; empty if there is none."""
        return self._lines[self._cursor].key if self._has_cursor and self._lines else ""

    def show_lines(self, lines: Sequence[Line]) -> None:
        """Replace the lines. The cursor stays on its line, else at its row."""
        selected = self.selected
        self._lines = lines
        if selected:
            keys = (number for number, line in enumerate(lines) if line.key == selected)
            self._cursor = next(keys, self._cursor)
        self._cursor = max(0, min(self._cursor, len(lines) - 1))
        widest = max((line.text.cell_len for line in lines), default=0)
        self.virtual_size = Size(widest, len(lines))
        self._follow()

    def render_line(self, y: int) -> Strip:
        """Draw one line as Textual asks for it: ``y`` counts from the top of the visible part."""
        left, top = self.scroll_offset
        number, width = top + y, self.scrollable_content_region.width
        if number >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        text = self._lines[number].text
        strip = Strip(text.render(self.app.console), text.cell_len)
        strip = strip.adjust_cell_length(max(text.cell_len, left + width)).crop(left, left + width)
        is_cursor = self._has_cursor and number == self._cursor
        return strip.apply_style(self.rich_style + _CURSOR if is_cursor else self.rich_style)

    def action_move(self, by: int) -> None:
        if self._has_cursor:
            self._move_to(self._cursor + by)
        else:
            self.scroll_relative(y=by, animate=False)

    def action_move_page(self, direction: int) -> None:
        self.action_move(direction * max(1, self.scrollable_content_region.height - 1))

    def action_move_to_end(self, direction: int) -> None:
        self.action_move(direction * len(self._lines))

    def action_choose(self) -> None:
        if self.selected:
            self.post_message(self.Chosen())

    def _move_to(self, number: int) -> None:
        self._cursor = max(0, min(number, len(self._lines) - 1))
        self._follow()

    def _follow(self) -> None:
        if self._has_cursor and self._lines:
            if self.scrollable_content_region.height > 1:  # else it is not seen, and has no top to keep
                self.scroll_to_region(Region(self.scroll_offset.x, self._cursor, 1, 1), animate=False)
            self.post_message(self.Moved())
        self.refresh()
