"""Macros of C that get another name: the preprocessor's lines, and the texts of macros, have their uses too."""

from pathlib import Path

import pytest
from support.refactor_case import workspace

HEADER = "#ifdef _WIN32\n#define OLD_OS 1\n#endif\n#define BOTH (OLD_OS + 1)\n#define SAY(OLD_OS) OLD_OS\n"
SOURCE = "#if defined(OLD_OS) && OLD_OS > 1\nint a = f(OLD_OS);\n#elif OLD_OS\n#undef OLD_OS\n#endif\n"
OTHER = '#ifndef OLD_OS\nconst char *b = "OLD_OS";\n#define TEXT "OLD_OS" // OLD_OS\n#endif\n'


@pytest.mark.parametrize("ending", ["c", "cc"])
@pytest.mark.parametrize("old", ["#define OLD_OS", "defined(OLD_OS)", "#ifndef OLD_OS"])
def test_a_macro_is_renamed_wherever_the_preprocessor_reads_it(tmp_path: Path, ending: str, old: str) -> None:
    texts = [(f"port.{ending}", HEADER), (f"a.{ending}", SOURCE), (f"b.{ending}", OTHER)]
    first = next(at for at, (_, text) in enumerate(texts) if old in text)
    files = dict([texts[first], *texts[:first], *texts[first + 1 :]])
    found = workspace(tmp_path, "cpp" if ending == "cc" else "c", files, old, old.replace("OLD_OS", "NEW_OS"))
    for path, text in files.items():
        here = text.replace(old, old.replace("OLD_OS", "NEW_OS"), 1) if path in [*files][:1] else text
        done = text.replace("OLD_OS", "NEW_OS")
        for kept in ("SAY({0}) {0}", '= "{0}"', '"{0}" // {0}'):
            done = done.replace(kept.format("NEW_OS"), kept.format("OLD_OS"))
        assert found[path].edit.applied(here) == done if path in found else here == done


def test_the_text_of_a_macro_uses_a_function(tmp_path: Path) -> None:
    files = {
        "a.c": "int load(int a) { return a; }\n",
        "b.c": "#define TWICE(x) (load(x) + load(2))\nint b = load(3);\n",
    }
    found = workspace(tmp_path, "c", files, "load", "fill")
    assert found["b.c"].edit.applied(files["b.c"]) == files["b.c"].replace("load", "fill")
