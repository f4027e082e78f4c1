# test run
# A point or an exponent makes a float, and a sign belongs to the literal.
def f():
    return 5., .5, 1e3, 1E-2, 2j, -3, 007

# run: f() == (5.0, 0.5, 1000.0, 0.01, complex(0.0, 2.0), -3, 7)
