"""The server side of `midspan play`: one page in the browser that shows how a hole is filled (docs/play.md).

The page asks as an editor does: its texts go to a language server of its own, which cuts the hole, asks the engine and
decides what is shown. Nothing of them is written anywhere.
"""
