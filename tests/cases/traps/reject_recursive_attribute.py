# test frontend
# An attribute assigned in `__init__` cannot contain objects of the class.
class Chain:
    def __init__(self, rest: Dict[str, Chain]):
        self.rest = rest  # error: cannot be of a type that contains class '__torch__.Chain'
