"""Every kernel belongs to a part, and every part to what needs it."""

from ibbmaster.kernel.parts import KERNELS, PARTS, KernelPart, KernelSet, parts_of


def test_every_set_has_parts_and_every_part_kernels_of_its_own():
    assert set(PARTS) == set(KernelSet)
    assert {part for parts in PARTS.values() for part in parts} == set(KernelPart) == set(KERNELS)
    names = [name for kernels in KERNELS.values() for name in kernels]
    assert len(names) == len(set(names))


def test_what_more_than_one_set_needs_is_there_once_and_pages_come_first():
    assert parts_of([KernelSet.READ, KernelSet.PRINT]) == [KernelPart.COLLECT, KernelPart.COLUMNS, KernelPart.LINES]
    assert parts_of([KernelSet.SERVE])[0] == KernelPart.PAGES
    assert parts_of([KernelPart.FILES]) == [KernelPart.FILES]
