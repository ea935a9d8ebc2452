"""Pages of Django's ORM."""

import datetime
import os
import sys

import django
from django.conf import settings

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import talk  # noqa: E402


def configure(host, port, database, user, password):
    settings.configure(
        USE_TZ=True, TIME_ZONE="UTC", INSTALLED_APPS=[],
        DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "HOST": host, "PORT": port, "NAME": database,
                               "USER": user, "PASSWORD": password}})
    django.setup()


def pages():
    """Name → function that gives rows. The models can be declared only after Django has been configured."""
    from django.core.paginator import Paginator
    from django.db import models, transaction
    from django.db.models import Count, Exists, Max, OuterRef, Sum
    from django.db.models.functions import TruncMonth
    from django.utils import timezone

    class Store(models.Model):
        store_id = models.IntegerField(primary_key=True)
        name, city, region = models.TextField(), models.TextField(), models.TextField()

        class Meta:
            app_label, managed, db_table = "shop", False, "stores"

    class Product(models.Model):
        product_id = models.IntegerField(primary_key=True)
        name, brand, category = models.TextField(), models.TextField(), models.TextField()

        class Meta:
            app_label, managed, db_table = "shop", False, "products"

    class Customer(models.Model):
        customer_id = models.IntegerField(primary_key=True)
        name, country = models.TextField(), models.TextField()

        class Meta:
            app_label, managed, db_table = "shop", False, "customers"

    class Sale(models.Model):
        sale_id = models.BigIntegerField(primary_key=True)
        product = models.ForeignKey(Product, models.DO_NOTHING, related_name="sales")
        sold_at, quantity, channel = models.DateTimeField(), models.IntegerField(), models.TextField()

        class Meta:
            app_label, managed, db_table = "shop", False, "sales"

    customers = Customer.objects.filter(country="DE").order_by("customer_id")

    def page_with_count():
        page = Paginator(customers, 20).page(3)
        return [(page.paginator.count,), *((one.pk, one.name) for one in page)]

    def locked():
        with transaction.atomic():
            return [(Store.objects.select_for_update().get(pk=17).name,)]

    def prefetched():
        return [(product.pk, sorted(sale.pk for sale in product.sales.all()))
                for product in Product.objects.filter(brand="Brand 007").order_by("pk").prefetch_related("sales")]

    midnight = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    sold = Sale.objects.filter(product=OuterRef("pk"))
    return {
        "list": lambda: Product.objects.filter(category="Books").order_by("product_id").values_list()[:20],
        "detail": lambda: [(Store.objects.get(pk=17).name,)],
        "aggregate": lambda: Sale.objects.values_list("channel").annotate(orders=Count("*"), units=Sum("quantity")).order_by("channel"),
        "page with count": page_with_count,
        "related rows": lambda: [(sale.pk, sale.product.name) for sale in Sale.objects.filter(pk__lte=10).order_by("pk").select_related("product")],
        "since midnight": lambda: [tuple(Sale.objects.filter(sold_at__gte=midnight - datetime.timedelta(days=7)).aggregate(orders=Count("*"), last=Max("sold_at")).values())],
        "prefetch_related": prefetched,
        "TruncMonth": lambda: Sale.objects.annotate(month=TruncMonth("sold_at")).values_list("month").annotate(orders=Count("*")).order_by("month"),
        "exists(), in_bulk()": lambda: [(Product.objects.filter(Exists(sold)).exists(), *Product.objects.in_bulk([1, 2, 3]))],
        "the time of the application": lambda: [(Sale.objects.filter(sold_at__lt=timezone.now() - datetime.timedelta(days=3650)).count(),)],
        "a row lock": locked,
        "a random order": lambda: Store.objects.filter(pk=17).order_by("?").values_list("name"),
    }


class Reader:
    def __init__(self, mode, *address):
        configure(*address)
        self.pages = pages()

    def read(self, name, _):
        return list(self.pages[name]())

    def close(self):
        from django.db import connection
        connection.close()


talk.serve(Reader)
