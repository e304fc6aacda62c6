"""Transfers whose every byte is checked: `traffic.py serve ADDRESS PORT`, and fetch() for clients.

A client asks `down SIZE SEED CHUNK PAUSE_MS` or `up SIZE SEED CHUNK PAUSE_MS`; the bytes follow from the seed, so that either end
knows them. Who sends makes a pause after each chunk.
"""

import asyncio
import random
import socket
import sys
import time

BLOCK = 65536


def stream(seed):
    """Endless bytes of a seed, by blocks."""
    block = random.Random(seed).randbytes(BLOCK)
    number = 0
    while True:
        # So that no block is like another, at little cost.
        yield number.to_bytes(8, "big") + block[8:]
        number += 1


async def send(writer, size, seed, chunk, pause):
    blocks, rest = stream(seed), b""
    while size > 0:
        while len(rest) < min(chunk, size):
            rest += next(blocks)
        part, rest = rest[: min(chunk, size)], rest[min(chunk, size) :]
        writer.write(part)
        await writer.drain()
        size -= len(part)
        if pause:
            await asyncio.sleep(pause)


async def receive(reader, size, seed, patience):
    """Returns the longest silence; raises ValueError at the first wrong byte."""
    blocks, expected, got, last, gap = stream(seed), b"", 0, time.monotonic(), 0.0
    while got < size:
        part = await asyncio.wait_for(reader.read(BLOCK), patience)
        now = time.monotonic()
        gap, last = max(gap, now - last), now
        if not part:
            raise ValueError(f"ended after {got} of {size} bytes")
        while len(expected) < len(part):
            expected += next(blocks)
        if part != expected[: len(part)]:
            raise ValueError(f"wrong bytes after {got}")
        expected = expected[len(part) :]
        got += len(part)
    return gap


async def answer(reader, writer):
    try:
        way, size, seed, chunk, pause = (await reader.readline()).split()
        size, seed, chunk, pause = int(size), int(seed), int(chunk), float(pause) / 1e3
        if way == b"down":
            await send(writer, size, seed, chunk, pause)
        else:
            await receive(reader, size, seed, 60)
            writer.write(b"whole\n")
        await writer.drain()
    except (ValueError, OSError, asyncio.TimeoutError):
        writer.transport.abort()
    finally:
        writer.close()


def watch(writer, seconds):
    """An end that is gone is found out when nothing has come for so long, and a second after it."""
    own = writer.get_extra_info("socket")
    own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, seconds), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, 9)):
        own.setsockopt(socket.IPPROTO_TCP, option, value)


async def fetch(way, server, port, size, seed, chunk=BLOCK, pause_ms=0, local=None, patience=30, keep_alive=None):
    """One transfer. Returns None and the longest silence, or what went wrong and where."""
    try:
        local = (local, 0) if local else None
        opening = asyncio.open_connection(server, port, local_addr=local, limit=4 * BLOCK)
        reader, writer = await asyncio.wait_for(opening, patience)
    except (OSError, asyncio.TimeoutError) as error:
        return f"not opened: {error!r}", 0.0
    try:
        if keep_alive:
            watch(writer, keep_alive)
        writer.write(f"{way} {size} {seed} {chunk} {pause_ms}\n".encode())
        if way == "down":
            return None, await receive(reader, size, seed, patience)
        await asyncio.wait_for(send(writer, size, seed, chunk, pause_ms / 1e3), 20 * patience)
        told = await asyncio.wait_for(reader.readline(), patience)
        return (None if told == b"whole\n" else "upload not whole"), 0.0
    except asyncio.TimeoutError:
        return "hung", float(patience)
    except (OSError, ValueError) as error:
        return f"{way} of {size}: {error}", 0.0
    finally:
        writer.transport.abort()


async def serve(address, port):
    server = await asyncio.start_server(answer, address, port, backlog=4096, limit=4 * BLOCK)
    print("ready", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[2], int(sys.argv[3])))
