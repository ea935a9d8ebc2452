"""Pages of SQLAlchemy's ORM over psycopg, and pandas.read_sql over it."""

import datetime
import os
import sys

import pandas
import sqlalchemy as sa
from sqlalchemy import func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, joinedload, mapped_column, relationship, selectinload

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import talk  # noqa: E402


class Base(DeclarativeBase):
    pass


class Store(Base):
    __tablename__ = "stores"
    store_id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    region: Mapped[str]


class Product(Base):
    __tablename__ = "products"
    product_id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    brand: Mapped[str]
    category: Mapped[str]
    sales: Mapped[list["Sale"]] = relationship(back_populates="product", order_by="Sale.sale_id")


class Customer(Base):
    __tablename__ = "customers"
    customer_id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    country: Mapped[str]


class Sale(Base):
    __tablename__ = "sales"
    sale_id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True)
    product_id: Mapped[int] = mapped_column(sa.ForeignKey("products.product_id"))
    sold_at: Mapped[datetime.datetime] = mapped_column(sa.DateTime(timezone=True))
    quantity: Mapped[int]
    channel: Mapped[str]
    product: Mapped[Product] = relationship(back_populates="sales")


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def midnight():
    return now().replace(hour=0, minute=0, second=0, microsecond=0)


CUSTOMERS = select(Customer).where(Customer.country == "DE")
BY_CHANNEL = select(Sale.channel, func.count(), func.sum(Sale.quantity)).group_by(Sale.channel).order_by(Sale.channel)
STORE = select(Store.name).where(Store.store_id == 17)


def page_with_count(session):
    total = session.scalar(select(func.count()).select_from(CUSTOMERS.subquery()))
    page = session.scalars(CUSTOMERS.order_by(Customer.customer_id).limit(20).offset(40))
    return [(total,), *((one.customer_id, one.name) for one in page)]


def joined(session):
    found = session.scalars(select(Sale).options(joinedload(Sale.product)).where(Sale.sale_id <= 10).order_by(Sale.sale_id))
    return [(sale.sale_id, sale.product.name) for sale in found]


def selected_in(session):
    found = session.scalars(select(Product).options(selectinload(Product.sales)).where(Product.brand == "Brand 007").order_by(Product.product_id))
    return [(product.name, *(sale.sale_id for sale in product.sales)) for product in found]


PAGES = {
    "list": lambda session: session.execute(select(Product.product_id, Product.name).where(Product.category == "Books").order_by(Product.product_id).limit(20)),
    "detail": lambda session: [(session.get(Store, 17).name,)],
    "aggregate": lambda session: session.execute(BY_CHANNEL),
    "page with count": page_with_count,
    "related rows": joined,
    "since midnight": lambda session: session.execute(
        select(func.count(), func.max(Sale.sold_at)).where(Sale.sold_at >= midnight() - datetime.timedelta(days=7))),
    "selectinload": selected_in,
    "date_trunc": lambda session: session.execute(select(func.date_trunc("month", Sale.sold_at).label("month"), func.count()).group_by("month").order_by("month")),
    "pandas.read_sql": lambda session: pandas.read_sql(BY_CHANNEL, session.connection()).itertuples(index=False),
    "func.current_date()": lambda session: session.execute(select(func.count()).where(Sale.sold_at < func.current_date() - 30)),
    "now() in WHERE": lambda session: session.execute(select(func.count()).where(Sale.sold_at < func.now() - datetime.timedelta(days=3650))),
    "the time of the application": lambda session: session.execute(select(func.count()).where(Sale.sold_at < now() - datetime.timedelta(days=3650))),
    "a row lock": lambda session: session.execute(STORE.with_for_update()),
    "a random order": lambda session: session.execute(STORE.order_by(func.random())),
}


class Reader:
    def __init__(self, mode, host, port, database, user, password):
        url = sa.URL.create("postgresql+psycopg", username=user, password=password, host=host, port=int(port), database=database)
        options = {"isolation_level": mode} if mode.isupper() else {}
        self.engine = sa.create_engine(url, **options)

    def read(self, name, _):
        with Session(self.engine) as session:
            return [tuple(row) for row in PAGES[name](session)]

    def close(self):
        self.engine.dispose()


talk.serve(Reader)
