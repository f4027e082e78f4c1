# test frontend
# A class cannot have an attribute that contains objects of it, not even an optional one.
class Node:
    next: Optional[Node]  # error: cannot be of a type that contains class '__torch__.Node'
    def __init__(self, next: Optional[Node]):
        self.next = next
