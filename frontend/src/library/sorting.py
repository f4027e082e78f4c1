def sorted(self: List[Element], reverse: bool = False) -> List[Element]:
    result = [element for element in self]
    width = 1
    while width < len(result):
        merged: List[Element] = []
        start = 0
        while start < len(result):
            middle = min(start + width, len(result))
            end = min(middle + width, len(result))
            i, j = start, middle
            while i < middle or j < end:
                left = i < middle
                if left and j < end:
                    a, b = (result[i], result[j]) if reverse else (result[j], result[i])
                    left = not (a < b)
                if left:
                    merged.append(result[i])
                    i += 1
                else:
                    merged.append(result[j])
                    j += 1
            start = end
        result = merged
        width *= 2
    return result

def sort(self: List[Element], reverse: bool = False) -> None:
    ordered = sorted(self, reverse)
    for i in range(len(ordered)):
        self[i] = ordered[i]

def sorted_unordered(self: List[Element], reverse: bool = False) -> List[Element]:
    if len(self) > 0:
        raise RuntimeError("Reason")
    return self[:]

def sort_unordered(self: List[Element], reverse: bool = False) -> None:
    if len(self) > 0:
        raise RuntimeError("Reason")
