# test frontend
# A literal has the type of its annotation; of a union, the elements select the member.
def chosen(n: int) -> Tuple[Union[List[str], List[int]], Union[Dict[str, int], Dict[str, str]]]:
    a: Union[List[str], List[int]] = [n]
    b: Union[Dict[str, int], Dict[str, str]] = {"a": "b"}
    return a, b

def no_list() -> int:
    return [1]  # error: Expected an annotation of type List but got int

def no_dict() -> Optional[List[int]]:
    return {"a": 1}  # error: Expected an annotation of type Dict but got Optional[List[int]]

def no_member() -> Union[int, str]:
    return [1]  # error: Expected an Union type annotation with an inner List type, but got Union[int, str]

def no_element() -> Union[List[int], List[float], List[bool]]:
    return ["a"]  # error: none of those types match the types of the given list elements, which were unified to str

def several() -> Union[Dict[str, int], Dict[int, int]]:
    return {}  # error: Cannot assign an empty dict to a variable annotated to be type

def values() -> Dict[str, int]:
    return {"a": 1.0}  # error: the type of values given by the dict literal is float

def entries(n: int) -> Dict[str, int]:
    return {i: i for i in range(n)}  # error: did not match the type of an actual key type `int`

def elements(n: int) -> List[str]:
    return [i for i in range(n)]  # error: which were unified to int

def keys() -> Dict[int, int]:
    d = {1: 1, "a": 2}  # error: Dict keys must contain only a single type. Expected: int but found str instead
    return {1: 1}
