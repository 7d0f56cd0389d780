"""coq-tactician's PyTact: packed requests over a socket, a graph walked node by node."""

import os
import socket
import threading

import capnp

graph = capnp.load(os.path.join(os.path.dirname(__file__), "graph.capnp"))


def make(size):
    request = graph.Request.new_message()
    made = request.init("predict")
    nodes = made.init("nodes", size)
    edges = made.init("edges", size)
    for n in range(size):
        node = nodes[n]
        node.childrenIndex, node.childrenCount = n, 1
        if n % 4 == 0:
            definition = node.label.init("definition")
            definition.hash, definition.name = n * 2**40, f"def{n}"
            if n % 8:
                proof = definition.init("proof", 1)
                proof[0].tactic = "auto"
                proof[0].outcome = [n, n + 1]
            else:
                definition.axiom = None
        elif n % 4 == 1:
            node.label.int = n
        elif n % 4 == 2:
            node.label.text = f"text{n}"
        else:
            node.label.app = None
        edges[n].label = graph.Edge.Label.appArg if n % 2 else "appFun"
        edges[n].target = (n + 1) % size
    return request


def client(connection, size, rounds, answers):
    file = connection.makefile("rb")
    for n in range(rounds):
        request = make(size) if n % 2 else graph.Request.new_message(synchronize=n)
        request.write_packed(connection.makefile("wb"))
        response = graph.Response.read_packed(file, traversal_limit_in_words=2**64 - 1)
        which = response.which()
        if which == "predictions":
            answers.append(
                [[p.tactic, p.confidence, list(p.arguments)] for p in response.predictions]
            )
        else:
            answers.append([str(which), response.synchronized])
    connection.shutdown(socket.SHUT_RDWR)
    file.close()
    connection.close()


def walk(made):
    totals = {}
    number = 0
    for node in made.nodes:
        which = node.label.which
        totals[str(which)] = totals.get(str(which), 0) + 1
        if which == graph.Node.Label.definition:
            definition = node.label.definition
            number += definition.hash % 97
            if definition.which() == "proof":
                number += sum(definition.proof[0].outcome)
        elif which == graph.Node.Label.int:
            number += node.label.int
    for edge in made.edges:
        number += edge.target if edge.label == graph.Edge.Label.appArg else edge.label.raw
    return totals, number


def main(scale):
    ours, theirs = socket.socketpair()
    answers = []
    rounds = 6
    thread = threading.Thread(target=client, args=(theirs, 60 * scale, rounds, answers))
    thread.start()
    seen = []
    file = ours.makefile("rb")
    for message in graph.Request.read_multiple_packed(file, traversal_limit_in_words=2**64 - 1):
        response = graph.Response.new_message()
        if message.which() == "predict":
            totals, number = walk(message.predict)
            seen.append([totals, number])
            predictions = response.init("predictions", 2)
            for n in range(2):
                predictions[n].tactic = f"tactic{n}"
                predictions[n].confidence = 0.5 / (n + 1)
                predictions[n].arguments = [n, number % 1000]
        else:
            response.synchronized = message.synchronize
        response.write_packed(ours.makefile("wb"))
        if len(seen) * 2 == rounds:
            break
    thread.join()
    file.close()
    ours.close()
    return [seen, answers, graph.protocolVersion]
