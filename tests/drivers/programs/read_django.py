"""Reads through Django's ORM: querysets with relative filters and Trunc, as a list and by iterator().

A panel's SQL is what Django makes of it, so what run.py sends in the place of a statement is the name of one of `PANELS`.
"""

import datetime
import os

import django
import talk
from django.conf import settings

LITERAL = os.environ.get("LITERAL_DATES") == "1"
PART = 500


def configure(host, port, database, user, password):
    settings.configure(
        USE_TZ=True, TIME_ZONE="UTC", INSTALLED_APPS=[],
        DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "HOST": host, "PORT": port, "NAME": database,
                               "USER": user, "PASSWORD": password}})
    django.setup()


def panels():
    """Name → queryset. The models can be declared only after Django has been configured."""
    from django.contrib.postgres.functions import TransactionNow
    from django.db import models
    from django.db.models import Avg, Count, DateTimeField, ExpressionWrapper, Max, Sum, Value
    from django.db.models.functions import ExtractYear, Now, TruncDate, TruncMonth, TruncWeek
    from django.utils import timezone

    class Product(models.Model):
        product_id = models.IntegerField(primary_key=True)
        brand = models.TextField()

        class Meta:
            app_label, managed, db_table = "dashboard", False, "products"

    class Sale(models.Model):
        sale_id = models.BigIntegerField(primary_key=True)
        day = models.DateField(db_column="date_id")
        product = models.ForeignKey(Product, models.DO_NOTHING)
        sold_at = models.DateTimeField()
        quantity = models.IntegerField()
        discount = models.DecimalField(max_digits=4, decimal_places=2)
        channel = models.TextField()

        class Meta:
            app_label, managed, db_table = "dashboard", False, "sales"

    midnight = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    literal = Value(midnight, output_field=DateTimeField())
    # STATEMENT_TIMESTAMP() and CURRENT_TIMESTAMP.
    statement, transaction = (literal, literal) if LITERAL else (Now(), TransactionNow())
    today, sales = midnight.date(), Sale.objects

    def ago(now, days):
        return ExpressionWrapper(now - datetime.timedelta(days=days), output_field=DateTimeField())

    def months(now):
        return by_month.filter(sold_at__gte=TruncMonth(ago(now, 365))).order_by("month")

    def days(now):
        return sales.filter(day__gt=TruncDate(ago(now, 7))).values("day").annotate(orders=Count("*")).order_by("day")

    by_month = sales.annotate(month=TruncMonth("sold_at")).values("month").annotate(orders=Count("*"), units=Sum("quantity"))
    return {
        "months, TruncMonth(Now())": months(statement),
        "months, TruncMonth(TransactionNow())": months(transaction),
        "days, TruncDate(Now())": days(statement),
        "days, TruncDate(TransactionNow())": days(transaction),
        "days, relative in Python": sales.filter(day__gt=today - datetime.timedelta(days=7)).values("day", "channel")
                                         .annotate(discount=Avg("discount")).order_by("day", "channel"),
        "weeks, relative in Python": sales.filter(sold_at__gte=midnight - datetime.timedelta(days=56), channel="web")
                                          .annotate(week=TruncWeek("sold_at")).values("week").annotate(last=Max("sold_at")).order_by("week"),
        "year, ExtractYear(TransactionNow())": by_month.filter(day__year=ExtractYear(transaction)).order_by("month"),
        "products, TruncMonth(TransactionNow())": sales.filter(sold_at__gte=TruncMonth(ago(transaction, 365)), product_id__lte=1700)
                                                       .values("product_id", "product__brand").annotate(orders=Count("*"))
                                                       .order_by("product_id"),
    }


class Reader:
    def __init__(self, mode, host, port, database, user, password):
        configure(host, port, database, user, password)
        self.mode, self.panels = mode, panels()

    def read(self, name, _):
        from django.db import transaction
        panel = self.panels[name].all()    # a queryset keeps its rows; a copy asks again
        if self.mode == "iterator() in atomic()":
            with transaction.atomic():
                return [row.values() for row in panel.iterator(chunk_size=PART)]
        rows = panel.iterator(chunk_size=PART) if self.mode == "iterator()" else panel
        return [row.values() for row in rows]

    def close(self):
        from django.db import connection
        connection.close()


talk.serve(Reader)
