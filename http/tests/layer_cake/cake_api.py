# The messages of the texture server, and one with a map.
import layer_cake as lc

class Xy(object):
    def __init__(self, x: int=1, y: int=1):
        self.x = x
        self.y = y

class Count(object):
    def __init__(self, words: dict[str, int]=None):
        self.words = words or {}

lc.bind(Xy)
lc.bind(Count)

table_type = lc.def_type(list[list[float]])
count_type = lc.def_type(dict[str, int])
