"""Holes in five languages, with what Qwen2.5-Coder 0.5B writes there, left to right."""

import attrs

from engine.protocol.messages import Extent, Fill, RuleName


@attrs.frozen
class Known:
    """A file with its cursor at `|`, and what the model writes there."""

    what: str
    language: str
    text: str
    written: str
    extent: Extent = "line"

    def fill(self, rule: RuleName) -> Fill:
        prefix, _, suffix = self.text.partition("|")
        return Fill(
            id=1,
            prefix=prefix,
            suffix=suffix,
            extent=self.extent,
            language=self.language,
            max_tokens=48,
            budget_ms=120_000.0,
            rule=rule,
            choose_from=1,
        )


READ_FILE = 'package main\n\nimport (\n\t"fmt"\n\t"os"\n)\n\nfunc main() {\n\tdata, err := os.ReadFile("in.txt")\n\t'
KNOWN = (
    Known(
        "the end of a line",
        "python",
        'def add(first, second):\n    """Return the sum."""\n    return |\n',
        "first + second",
    ),
    Known(
        "a line end with a token for colon and newline",
        "python",
        "def mean(values):\n    total = 0\n    for value in |\n        total += value\n"
        "    return total / len(values)\n",
        "values:",
    ),
    Known(
        "only a colon is missing",
        "python",
        "def clamp(value, low, high):\n    if value < low|\n        return low\n    if value > high:\n"
        "        return high\n    return value\n",
        ":",
    ),
    Known(
        "inside a call",
        "python",
        "import json\n\n\ndef read_config(path):\n    with open(path) as stream:\n        return json.load(|)\n",
        "stream",
    ),
    Known("before a word", "python", "def area(width, height):\n    return |height\n", "width * "),
    Known("a begun word", "python", "def load(path):\n    text = path.read_te|\n    return text\n", "xt()"),
    Known(
        "CRLF",
        "python",
        'def greet(vorname):\r\n    return "Gr\u00fc\u00dfe, {}".format(|)\r\n\r\n\r\nprint(greet("Zo\u00eb"))\r\n',
        "vorname",
    ),
    Known(
        "names that are not ASCII",
        "python",
        "gr\u00f6\u00dfe = 10\nbreite = 20\nfl\u00e4che = gr\u00f6\u00dfe * |\nprint(fl\u00e4che)\n",
        "breite",
    ),
    Known(
        "the end of a statement",
        "typescript",
        "interface User {\n  name: string;\n  age: number;\n}\n\n"
        "function isAdult(user: User): boolean {\n  return |\n}\n",
        "user.age >= 18;",
    ),
    Known("a lambda", "typescript", "const squares = numbers.map((n) => |);\nconsole.log(squares);\n", "n * n"),
    Known(
        "several lines",
        "typescript",
        "export function sum(values: number[]): number {\n  let total = 0;\n  for (const value of |\n"
        "  return total;\n}\n",
        "values) {\n    total += value;\n  }",
        "lines",
    ),
    Known(
        "tabs, and a block that opens",
        "go",
        READ_FILE + "if |\n\t\tpanic(err)\n\t}\n\tfmt.Println(string(data))\n}\n",
        "err != nil {",
    ),
    Known(
        "a value to return",
        "go",
        "package main\n\nfunc max(a, b int) int {\n\tif a > b {\n\t\treturn |\n\t}\n\treturn b\n}\n",
        "a",
    ),
    Known(
        "several lines with tabs",
        "go",
        "package main\n\nfunc sum(values []int) int {\n\ttotal := 0\n\t|\n\treturn total\n}\n",
        "for _, value := range values {\n\t\ttotal += value\n\t}",
        "lines",
    ),
    Known(
        "an expression as the body",
        "rust",
        'fn square(x: i32) -> i32 {\n    |\n}\n\nfn main() {\n    println!("{}", square(4));\n}\n',
        "x * x",
    ),
    Known(
        "the other half of a formula",
        "rust",
        "struct Point {\n    x: f64,\n    y: f64,\n}\n\nimpl Point {\n    fn length(&self) -> f64 {\n"
        "        (self.x * self.x + |).sqrt()\n    }\n}\n",
        "self.y * self.y",
    ),
    Known(
        "a body of one statement",
        "java",
        "public class Counter {\n    private int count;\n\n    public void increment() {\n        |\n    }\n\n"
        "    public int getCount() {\n        return count;\n    }\n}\n",
        "count++;",
    ),
    Known(
        "inside a loop's head",
        "java",
        "import java.util.List;\n\nclass Sums {\n    static int sum(List<Integer> values) {\n        int total = 0;\n"
        "        for (int value : |) {\n            total += value;\n        }\n        return total;\n    }\n}\n",
        "values",
    ),
)
