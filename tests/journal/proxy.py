import socket
import threading
from pathlib import Path


class Proxy:
    """Stands between committer and server. It swallows the next answer that has `eat` in it and hangs up."""

    def __init__(self, server: str, folder: Path) -> None:
        self.server = server
        self.eat: bytes | None = None
        self.eaten = 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"{folder}/.s.PGSQL.5432")
        self.listener.listen()
        self.ends: list[socket.socket] = [self.listener]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.server)
            self.ends += [client, server]
            for pair in ((client, server, False), (server, client, True)):
                threading.Thread(target=self.pump, args=pair, daemon=True).start()

    def pump(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        try:
            while data := source.recv(65536):
                if answers and self.eat and self.eat in data:
                    self.eat, self.eaten = None, self.eaten + 1  # the server has committed and answered
                    break
                target.sendall(data)
        except OSError:
            pass
        self.hang_up(source, target)

    def close(self) -> None:
        self.hang_up(*self.ends)
        for end in self.ends:
            end.close()

    @staticmethod
    def hang_up(*ends: socket.socket) -> None:
        for end in ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
