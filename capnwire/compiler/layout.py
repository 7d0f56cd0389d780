"""Where the fields of a struct lie: offsets, pointer indexes and discriminants.

Fields are added in ordinal order; each gets a place that later fields never move.  Sizes are
`lg`, the log2 of the bits (Bool 0, 64 bits 6); offsets are in units of the field's own size.
Nothing here knows of declarations.  Spec: struct-layout.md, 3.1.
"""

from __future__ import annotations

ISSUE_344 = (
    "Bad news: Cap'n Proto 0.5.x and previous contained a bug which would cause this schema to be "
    "compiled incorrectly. Please see: https://github.com/capnproto/capnproto/issues/344"
)


class Issue344(Exception):
    """This struct's layout would differ from what releases up to 0.5 made of it."""


class _Holes:
    """At most one free slot of each size below a word; offset 0 is never free, so 0 says none."""

    __slots__ = ("slots",)

    def __init__(self) -> None:
        self.slots = [0] * 6

    def take(self, lg: int) -> int | None:
        """A free slot of that size, splitting a larger one where needed."""
        if lg >= 6:
            return None
        offset = self.slots[lg]
        if offset:
            self.slots[lg] = 0
            return offset
        larger = self.take(lg + 1)
        if larger is None:
            return None
        self.slots[lg] = 2 * larger + 1
        return 2 * larger

    def fill(self, lg: int, offset: int, limit: int = 6) -> None:
        """Note what is left of a `limit`-sized slot after its part before `offset` is used."""
        while lg < limit:
            self.slots[lg] = offset
            lg += 1
            offset = (offset + 1) // 2

    def grow(self, lg: int, offset: int, factor: int) -> bool:
        """Double the slot at `offset` `factor` times into free slots, or change nothing."""
        if factor == 0:
            return True
        if lg == 6 or self.slots[lg] != offset + 1:
            return False
        if not self.grow(lg + 1, offset >> 1, factor - 1):
            return False
        self.slots[lg] = 0
        return True

    def smallest(self, lg: int) -> int | None:
        """The size of the smallest free slot that holds `lg`."""
        for size in range(lg, 6):
            if self.slots[size]:
                return size
        return None


class StructLayout:
    """The sections of a whole struct."""

    __slots__ = ("_holes", "data_words", "pointers", "strict")

    def __init__(self, *, strict: bool = True) -> None:
        self.data_words = self.pointers = 0
        self.strict = strict
        self._holes = _Holes()

    def add_void(self) -> None:
        """A Void takes no room."""

    def add_data(self, lg: int) -> int:
        """Room for a data field; gives its offset."""
        hole = self._holes.take(lg)
        if hole is not None:
            return hole
        offset = self.data_words << (6 - lg)
        self.data_words += 1
        self._holes.fill(lg, offset + 1)
        return offset

    def add_pointer(self) -> int:
        """Room for a pointer; gives its index."""
        self.pointers += 1
        return self.pointers - 1

    def expand(self, lg: int, offset: int, factor: int) -> bool:
        """Whether the slot could grow where it is."""
        return self._holes.grow(lg, offset, factor)


class UnionLayout:
    """A union: data locations and pointers that its members share."""

    __slots__ = ("discriminant", "locations", "members", "parent", "pointers", "strict")

    def __init__(self, parent: StructLayout | GroupLayout) -> None:
        self.parent = parent
        self.strict: bool = parent.strict
        self.members = 0
        self.discriminant: int | None = None
        self.locations: list[list[int]] = []
        self.pointers: list[int] = []

    def enter(self) -> None:
        """A member gets its first field; the second member brings the discriminant."""
        self.members += 1
        if self.members == 2:
            self.add_discriminant()

    def add_discriminant(self) -> bool:
        """Place the discriminant now; False if it has its place already."""
        if self.discriminant is not None:
            return False
        self.discriminant = self.parent.add_data(4)
        return True

    def expand_to(self, location: list[int], lg: int) -> bool:
        """Whether a location has, or could be given, that size."""
        if lg <= location[0]:
            return True
        factor = lg - location[0]
        if not self.parent.expand(location[0], location[1], factor):
            return False
        location[1] >>= factor
        location[0] = lg
        return True


class _Usage:
    """How much of a union's location one member uses: 2**used bits less the holes."""

    __slots__ = ("holes", "used")

    def __init__(self, used: int | None = None) -> None:
        self.used = used
        self.holes = _Holes()

    def fit(self, size: int, lg: int) -> int | None:
        """The size of the smallest hole that holds `lg` in a location of `size`."""
        used = self.used
        if used is None:
            return size if lg <= size else None
        if lg >= used:
            return lg if lg < size else None
        hole = self.holes.smallest(lg)
        if hole is not None:
            return hole
        return used if used < size else None

    def is_whole_word(self) -> bool:
        """Whether a whole word is used, without holes."""
        return self.used == 6 and not any(self.holes.slots)

    def allocate(self, lg: int) -> int:
        """Take the hole that `fit` found; gives its offset in the location."""
        used = self.used
        if used is None:
            self.used = lg
            return 0
        if lg >= used:
            self.holes.fill(used, 1, lg)
            self.used = lg + 1
            return 1
        offset = self.holes.take(lg)
        if offset is None:
            offset = 1 << (used - lg)
            self.holes.fill(lg, offset + 1, used)
            self.used = used + 1
        return offset


class GroupLayout:
    """One member of a union: a single field or a group."""

    __slots__ = ("_open", "_pointers", "_started", "_usages", "strict", "union")

    def __init__(self, union: UnionLayout) -> None:
        self.union = union
        self.strict = union.strict
        self._usages: list[_Usage] = []
        # Indexes of the locations that are not a whole word and used up: those never fit again.
        self._open: list[int] = []
        self._pointers = 0
        self._started = False

    def _enter(self) -> None:
        if not self._started:
            self._started = True
            self.union.enter()

    def add_void(self) -> None:
        """A Void takes no room, but makes the unions around it notice their member."""
        self._enter()
        self.union.parent.add_void()

    def add_pointer(self) -> int:
        """Room for a pointer, shared with the other members; gives its index."""
        self._enter()
        union = self.union
        if self._pointers == len(union.pointers):
            union.pointers.append(union.parent.add_pointer())
        self._pointers += 1
        return union.pointers[self._pointers - 1]

    def add_data(self, lg: int) -> int:
        """Room for a data field, shared with the other members; gives its offset."""
        self._enter()
        locations = self.union.locations
        usages = self._usages
        while len(usages) < len(locations):
            self._open.append(len(usages))
            usages.append(_Usage())
        best_size = best = -1
        for index in self._open:
            size = usages[index].fit(locations[index][0], lg)
            if size is not None and (best < 0 or size < best_size):
                best_size, best = size, index
                if size == lg:
                    break  # no hole is smaller
        if best >= 0:
            location = locations[best]
            offset = (location[1] << (location[0] - lg)) + usages[best].allocate(lg)
            if usages[best].is_whole_word():
                self._open.remove(best)
            return offset
        for index in self._open:
            grown = self._grow_into(usages[index], locations[index], lg)
            if grown is not None:
                return grown
        offset = self.union.parent.add_data(lg)
        locations.append([lg, offset])
        usages.append(_Usage(lg))
        if lg < 6:
            self._open.append(len(usages) - 1)
        return offset

    def _grow_into(self, usage: _Usage, location: list[int], lg: int) -> int | None:
        """Place a field by making a location larger."""
        used = usage.used
        if used is None:
            if not self.union.expand_to(location, lg):
                return None
            usage.used = lg
            return location[1] << (location[0] - lg)
        needed = max(used, lg) + 1
        if not self.union.expand_to(location, needed):
            return None
        usage.holes.fill(used, 1, needed)
        usage.used = needed
        offset = usage.holes.take(lg)
        assert offset is not None
        return (location[1] << (location[0] - lg)) + offset

    def expand(self, lg: int, offset: int, factor: int) -> bool:
        """Whether a nested union's location could grow where it is.

        Raises:
            Issue344: old releases laid this out in another way, and the layout is strict.
        """
        impossible = lg + factor > 6 or offset & ((1 << factor) - 1) != 0
        if impossible and not self.strict:
            return False
        for usage, location in zip(self._usages, self.union.locations, strict=False):
            if location[0] < lg or offset >> (location[0] - lg) != location[1]:
                continue
            inside = offset - (location[1] << (location[0] - lg))
            if inside == 0 and usage.used == lg:
                grown = self.union.expand_to(location, lg + factor)
                if grown and self.strict:
                    raise Issue344
                if grown:
                    usage.used = lg + factor
            else:
                grown = usage.holes.grow(lg, inside, factor)
            if impossible and grown:
                raise Issue344
            return grown
        raise AssertionError("a nested union's location lies in none of its group's")
