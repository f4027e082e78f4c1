# test frontend
# An attribute that `__init__` makes holds no objects of the class either.
class Chain:
    def __init__(self, rest: Dict[str, Chain]):
        self.rest = rest  # error: cannot be of a type that contains class '__torch__.Chain'
