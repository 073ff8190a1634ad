"""What minutes_neovim.py types, and the project around it: code of one day, written for this and seen by no model."""

import attrs

PROJECT = {
    "shop/__init__.py": "",
    "shop/models.py": '''"""What the shop sells, and to whom."""

from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal


@dataclass(frozen=True)
class Article:
    """One thing that can be bought. `price` is in euros."""

    number: str
    title: str
    price: Decimal
    weight_grams: int = 0


@dataclass(frozen=True)
class Customer:
    name: str
    email: str
    country: str = "DE"


@dataclass
class Order:
    """What a customer bought on a day."""

    customer: Customer
    placed_on: date
    articles: list[Article] = field(default_factory=list)

    def total(self) -> Decimal:
        return sum((article.price for article in self.articles), Decimal(0))
''',
    "shop/store.py": '''"""Keeps orders in a SQLite database."""

import json
import sqlite3
from datetime import date
from decimal import Decimal
from pathlib import Path

from shop.models import Article, Customer, Order


class OrderStore:
    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path)

    def load_order(self, order_number: int) -> Order:
        """Return an order. Raises KeyError if there is none."""
        row = self.connection.execute("SELECT body FROM orders WHERE number = ?", (order_number,)).fetchone()
        if row is None:
            raise KeyError(order_number)
        body = json.loads(row[0])
        customer = Customer(body["name"], body["email"], body["country"])
        articles = [Article(each["number"], each["title"], Decimal(each["price"])) for each in body["articles"]]
        return Order(customer, date.fromisoformat(body["placed_on"]), articles)

    def save_order(self, order_number: int, order: Order) -> None:
        """Write an order over the one with this number."""
        body = {
            "name": order.customer.name,
            "email": order.customer.email,
            "country": order.customer.country,
            "placed_on": order.placed_on.isoformat(),
            "articles": [
                {"number": article.number, "title": article.title, "price": str(article.price)}
                for article in order.articles
            ],
        }
        self.connection.execute("REPLACE INTO orders VALUES (?, ?)", (order_number, json.dumps(body)))
        self.connection.commit()
''',
    "tests/test_store.py": '''from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from shop.models import Article, Customer, Order
from shop.store import OrderStore


@pytest.fixture
def store(tmp_path: Path) -> OrderStore:
    return OrderStore(tmp_path / "orders.db")


def test_a_saved_order_can_be_loaded(store: OrderStore) -> None:
    customer = Customer("Ada", "ada@example.com")
    order = Order(customer, date(2026, 3, 1), [Article("17", "Lamp", Decimal("19.90"))])
    store.save_order(1, order)
    assert store.load_order(1) == order


def test_an_order_that_is_not_there_is_a_key_error(store: OrderStore) -> None:
    with pytest.raises(KeyError):
        store.load_order(2)
''',
    "web/api.ts": """export interface Article {
  number: string;
  title: string;
  price: number;
}

export interface Order {
  orderNumber: number;
  customerName: string;
  articles: Article[];
}

export async function loadOrder(orderNumber: number): Promise<Order> {
  const response = await fetch(`/api/orders/${orderNumber}`);
  if (!response.ok) {
    throw new Error(`Order ${orderNumber} could not be loaded: ${response.status}`);
  }
  return response.json();
}
""",
}


@attrs.frozen
class Piece:
    """A text that is typed from its first to its last character into the new file `path`, after `before`."""

    name: str
    path: str
    text: str
    before: str = ""


PIECES = (
    Piece(
        "imports",
        "shop/invoice.py",
        """import json
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path

from shop.models import Article, Customer, Order
from shop.store import OrderStore
""",
        '"""Writes invoices."""\n\n',
    ),
    Piece(
        "function",
        "shop/totals.py",
        """def total_by_country(orders: list[Order]) -> dict[str, Decimal]:
    \"\"\"Return what customers of each country paid.\"\"\"
    totals: dict[str, Decimal] = {}
    for order in orders:
        country = order.customer.country
        totals[country] = totals.get(country, Decimal(0)) + order.total()
    return totals


def heaviest_article(order: Order) -> Article | None:
    \"\"\"Return the article that weighs most, or None if there is no article.\"\"\"
    if not order.articles:
        return None
    return max(order.articles, key=lambda article: article.weight_grams)
""",
        '"""Sums over orders."""\n\nfrom decimal import Decimal\n\nfrom shop.models import Article, Order\n\n\n',
    ),
    Piece(
        "dict literal",
        "shop/export.py",
        """def as_dict(order: Order) -> dict[str, object]:
    return {
        "name": order.customer.name,
        "email": order.customer.email,
        "country": order.customer.country,
        "placed_on": order.placed_on.isoformat(),
        "total": str(order.total()),
    }
""",
        "from shop.models import Order\n\n\n",
    ),
    Piece(
        "tests",
        "tests/test_totals.py",
        """def test_an_order_without_articles_has_no_heaviest_one() -> None:
    order = Order(Customer("Ada", "ada@example.com"), date(2026, 3, 1), [])
    assert heaviest_article(order) is None


def test_totals_are_by_country() -> None:
    lamp = Article("17", "Lamp", Decimal("19.90"))
    first = Order(Customer("Ada", "ada@example.com"), date(2026, 3, 1), [lamp])
    assert total_by_country([first]) == {"DE": Decimal("19.90")}
""",
        "from datetime import date\nfrom decimal import Decimal\n\n"
        "from shop.models import Article, Customer, Order\n"
        "from shop.totals import heaviest_article, total_by_country\n\n\n",
    ),
    Piece(
        "TypeScript",
        "web/cart.ts",
        """export async function saveOrder(order: Order): Promise<void> {
  const response = await fetch(`/api/orders/${order.orderNumber}`, {
    method: "PUT",
    body: JSON.stringify(order),
  });
  if (!response.ok) {
    throw new Error(`Order ${order.orderNumber} could not be saved: ${response.status}`);
  }
}
""",
        'import { Order } from "./api";\n\n',
    ),
)
