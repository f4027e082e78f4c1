# test frontend
# A class has no field of itself but an optional one.
class Node:
    next: Node  # error:
    def __init__(self, next: Node):
        self.next = next
