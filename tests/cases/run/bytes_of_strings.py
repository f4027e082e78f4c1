# test run
# A byte of a string that is only compared with a constant.
def count(text: str):
    n = 0
    for i in range(len(text)):
        if text[i] == "o":
            n += 1
        if text[-1 - i] != "t":
            n += 100
    return n

def at(text: str, i: int):
    return text[i] == "a", text[i] != "a", text[i] == "ab", text[i] == ""

# run: count("tomato") == 402
# run: count("") == 0
# run: at("ba", 1) == (True, False, False, False)
# run: at("ba", -2) == (False, True, False, False)
# run: at("ba", 2) raises "basic_string::at: __n (which is 2) >= this->size() (which is 2)"
