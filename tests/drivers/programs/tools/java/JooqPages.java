import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import org.jooq.Condition;
import org.jooq.DSLContext;
import org.jooq.Field;
import org.jooq.Record;
import org.jooq.ResultQuery;
import org.jooq.SQLDialect;
import org.jooq.Table;
import org.jooq.impl.DSL;

import static org.jooq.impl.DSL.count;
import static org.jooq.impl.DSL.field;
import static org.jooq.impl.DSL.name;
import static org.jooq.impl.DSL.sum;
import static org.jooq.impl.DSL.table;

/** Pages of jOOQ, without code that it generates. */
public final class JooqPages extends Talk {
    private static final Table<Record> STORES = table(name("stores"));
    private static final Table<Record> PRODUCTS = table(name("products"));
    private static final Table<Record> CUSTOMERS = table(name("customers"));
    private static final Table<Record> SALES = table(name("sales"));
    private static final Field<Integer> STORE_ID = field(name("stores", "store_id"), Integer.class);
    private static final Field<Integer> PRODUCT_ID = field(name("products", "product_id"), Integer.class);
    private static final Field<String> PRODUCT = field(name("products", "name"), String.class);
    private static final Field<Integer> CUSTOMER_ID = field(name("customers", "customer_id"), Integer.class);
    private static final Field<Long> SALE_ID = field(name("sales", "sale_id"), Long.class);
    private static final Field<Integer> PRODUCT_OF_SALE = field(name("sales", "product_id"), Integer.class);
    private static final Field<OffsetDateTime> SOLD_AT = field(name("sales", "sold_at"), OffsetDateTime.class);
    private static final Field<String> CHANNEL = field(name("sales", "channel"), String.class);
    private static final Condition GERMANS = field(name("customers", "country"), String.class).eq("DE");

    private Connection connection;
    private DSLContext jooq;

    public static void main(String[] arguments) throws Exception {
        System.setProperty("org.jooq.no-logo", "true");
        System.setProperty("org.jooq.no-tips", "true");
        new JooqPages().serve();
    }

    @Override
    void open(String mode, String url, String user, String password) throws SQLException {
        connection = DriverManager.getConnection(url, user, password);
        jooq = DSL.using(connection, SQLDialect.POSTGRES);
    }

    @Override
    void close() throws SQLException {
        connection.close();
    }

    @Override
    void read(String page, String[] parameters) {
        OffsetDateTime now = OffsetDateTime.now(ZoneOffset.UTC);
        switch (page) {
            case "list":
                print(jooq.select(PRODUCT_ID, PRODUCT).from(PRODUCTS).where(field(name("category"), String.class).eq("Books")).orderBy(PRODUCT_ID).limit(20));
                break;
            case "detail":
                print(jooq.select(field(name("name"))).from(STORES).where(STORE_ID.eq(17)));
                break;
            case "aggregate":
                print(jooq.select(CHANNEL, count(), sum(field(name("quantity"), Integer.class))).from(SALES).groupBy(CHANNEL).orderBy(CHANNEL));
                break;
            case "page with count":
                row(jooq.fetchCount(CUSTOMERS, GERMANS));
                print(jooq.select(CUSTOMER_ID).from(CUSTOMERS).where(GERMANS).orderBy(CUSTOMER_ID).limit(20).offset(40));
                break;
            case "count().over()":
                print(jooq.select(CUSTOMER_ID, count().over()).from(CUSTOMERS).where(GERMANS).orderBy(CUSTOMER_ID).limit(20).offset(40));
                break;
            case "related rows":
                print(jooq.select(SALE_ID, PRODUCT).from(SALES).join(PRODUCTS).on(PRODUCT_ID.eq(PRODUCT_OF_SALE)).where(SALE_ID.le(10L)).orderBy(SALE_ID));
                break;
            case "multiset":
                print(jooq.select(PRODUCT, DSL.multiset(DSL.select(SALE_ID).from(SALES).where(PRODUCT_OF_SALE.eq(PRODUCT_ID)).orderBy(SALE_ID)))
                        .from(PRODUCTS).where(field(name("brand"), String.class).eq("Brand 007")).orderBy(PRODUCT_ID));
                break;
            case "since midnight":
                print(jooq.select(count(), DSL.max(SOLD_AT)).from(SALES).where(SOLD_AT.ge(now.truncatedTo(ChronoUnit.DAYS).minusDays(7))));
                break;
            case "the time of the application":
                print(jooq.selectCount().from(SALES).where(SOLD_AT.lt(now.minusDays(3650))));
                break;
            case "a row lock":
                print(jooq.select(field(name("name"))).from(STORES).where(STORE_ID.eq(17)).forUpdate());
                break;
            case "a random order":
                print(jooq.select(field(name("name"))).from(STORES).where(STORE_ID.eq(17)).orderBy(DSL.rand()));
                break;
            default:
                throw new IllegalArgumentException("no such page: " + page);
        }
    }

    private static void print(ResultQuery<?> query) {
        for (Record record : query.fetch()) {
            row(record.intoArray());
        }
    }
}
