# test run
# Defaults of the fields of a named tuple: any constant except a tensor.
class Colour(Enum):
    RED = 1
    BLUE = 2

class Many(NamedTuple):
    n: int
    numbers: List[int] = [1, 2]
    pair: Tuple[int, str] = (1, "é\n\"\\")
    z: complex = 1 - 2j
    none: Optional[List[float]] = None
    words: Dict[str, List[int]] = {"a, (b": [3], "c": []}
    colour: Colour = Colour.BLUE
    far: float = -math.inf
    nothing: List[str] = []
    where: Device = torch.device("cpu")
    half: float = 2

def numbers() -> List[int]:
    return Many(3).numbers

def pair() -> Tuple[int, str]:
    return Many(3).pair

def z() -> complex:
    return Many(3).z

def none() -> bool:
    return Many(3).none is None

def words() -> Dict[str, List[int]]:
    return Many(3).words

def colour() -> Tuple[str, int]:
    return Many(3).colour.name, Many(3).colour.value

def rest() -> Tuple[float, List[str], str, float]:
    many = Many(3, [4])
    return many.far, many.nothing, many.where.type, many.half

def given() -> Tuple[List[int], str]:
    many = Many(n=3, numbers=[7], pair=(2, "b"))
    return many.numbers, many.pair[1]

# run: numbers() == [1, 2]
# run: pair() == (1, "é\n\"\\")
# run: z() == complex(1.0, -2.0)
# run: none() == True
# run: words() == {"a, (b": [3], "c": []}
# run: colour() == ("BLUE", 2)
# run: rest() == (-inf, [], "cpu", 2.0)
# run: given() == ([7], "b")
