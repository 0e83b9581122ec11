# The texture server on layer_cake, in its four variants: one object, an object a request, a worker, a spool.
import layer_cake as lc
from cake_api import Xy, Count, table_type, count_type

def answer(m):
    if isinstance(m, Count):
        return lc.cast_to({k: 2 * v for k, v in m.words.items()}, count_type)
    if m.x > 100:
        return lc.Overloaded(f'{m.x} columns')
    return lc.cast_to([[0.5] * m.x for _ in range(m.y)], table_type)

def worker(self):
    while True:
        m = self.input()
        if isinstance(m, (Xy, Count)):
            self.send(answer(m), self.return_address)
        elif isinstance(m, lc.Stop):
            return lc.Aborted()

def one_request(self):
    m = self.input()
    self.send(answer(m), self.return_address)

lc.bind(worker)
lc.bind(one_request)

def server(self, variant: str=None, port: int=None):
    lc.listen(self, lc.HostPort('127.0.0.1', port), http_server=(Xy, Count))
    m = self.input()
    if not isinstance(m, lc.Listening):
        return m
    print('listens', flush=True)
    serves = None
    if variant == 'worker':
        serves = self.create(worker)
    elif variant == 'spool':
        serves = self.create(lc.ObjectSpool, worker)
    while True:
        m = self.input()
        if isinstance(m, lc.Returned):
            d = self.debrief()
            if isinstance(d, lc.OnReturned):
                d(self, m)
            continue
        if isinstance(m, lc.Faulted):
            return m
        if isinstance(m, lc.Stop):
            return lc.Aborted()
        if not isinstance(m, (Xy, Count)):
            continue

        def respond(self, response, args):
            self.send(lc.cast_to(response, self.returned_type), args.return_address)

        if variant == 'one':
            self.send(answer(m), self.return_address)
            continue
        to = self.create(one_request) if variant == 'each' else serves
        a = self.create(lc.GetResponse, m, to)
        self.on_return(a, respond, return_address=self.return_address)

lc.bind(server)

if __name__ == '__main__':
    lc.create(server)
