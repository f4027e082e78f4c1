# test frontend
# The name of a device is a default of a parameter that is a device; another text is not.
def named(d: Device = "cpu", e: Optional[Device] = "cuda:1") -> Device:
    return d

def wrong(d: Device = "nowhere") -> Device:  # error: Expected a default value of type Device on parameter "d", but found str
    return d
