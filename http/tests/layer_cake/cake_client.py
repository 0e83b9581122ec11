# A client of the texture server on layer_cake, which asks three questions and prints the answers.
import layer_cake as lc
from cake_api import Xy, Count

def client(self, port: int=None):
    lc.connect(self, lc.HostPort('127.0.0.1', port), http_client='/', application_json=True)
    m = self.input()
    if not isinstance(m, lc.Connected):
        return m
    server = self.return_address
    for question in (Xy(2, 2), Count({'a': 1, 'b': 2}), Xy(200, 2)):
        self.send(question, server)
        m = self.input()
        if isinstance(m, lc.Faulted):
            print(f'{type(m).__name__} {m.condition} {m.explanation}', flush=True)
        elif isinstance(m, lc.HttpResponse):
            print(f'HttpResponse {m.status_code} {m.body}', flush=True)
        else:
            print(m, flush=True)
    return None

lc.bind(client)

if __name__ == '__main__':
    lc.create(client)
