import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.FetchType;
import jakarta.persistence.Id;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.OrderBy;
import jakarta.persistence.Table;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.hibernate.LockMode;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

/** Pages of Hibernate over pgjdbc, each in a transaction of its own. */
public final class HibernatePages extends Talk {
    @Entity(name = "Store")
    @Table(name = "stores")
    public static class Store {
        @Id @Column(name = "store_id") int id;
        String name;
        String region;
    }

    @Entity(name = "Product")
    @Table(name = "products")
    public static class Product {
        @Id @Column(name = "product_id") int id;
        String name;
        String brand;
        String category;
        @OneToMany(mappedBy = "product") @OrderBy("id") List<Sale> sales;
    }

    @Entity(name = "Customer")
    @Table(name = "customers")
    public static class Customer {
        @Id @Column(name = "customer_id") int id;
        String name;
        String country;
    }

    @Entity(name = "Sale")
    @Table(name = "sales")
    public static class Sale {
        @Id @Column(name = "sale_id") long id;
        @ManyToOne(fetch = FetchType.LAZY) @JoinColumn(name = "product_id") Product product;
        @Column(name = "sold_at") OffsetDateTime soldAt;
        int quantity;
        String channel;
    }

    private SessionFactory factory;

    public static void main(String[] arguments) throws Exception {
        Logger.getLogger("").setLevel(Level.SEVERE);
        new HibernatePages().serve();
    }

    @Override
    void open(String mode, String url, String user, String password) {
        factory = new Configuration().addAnnotatedClass(Store.class).addAnnotatedClass(Product.class).addAnnotatedClass(Customer.class)
                .addAnnotatedClass(Sale.class).setProperty("hibernate.connection.url", url).setProperty("hibernate.connection.username", user)
                .setProperty("hibernate.connection.password", password).buildSessionFactory();
    }

    @Override
    void close() {
        factory.close();
    }

    @Override
    void read(String page, String[] parameters) {
        factory.inTransaction(session -> read(session, page));
    }

    private static void read(Session session, String page) {
        OffsetDateTime now = OffsetDateTime.now(ZoneOffset.UTC);
        switch (page) {
            case "list":
                session.createSelectionQuery("from Product where category = :category order by id", Product.class).setParameter("category", "Books")
                        .setMaxResults(20).getResultList().forEach(product -> row(product.id, product.name));
                break;
            case "detail":
                row(session.find(Store.class, 17).name);
                break;
            case "aggregate":
                session.createSelectionQuery("select channel, count(*), sum(quantity) from Sale group by channel order by channel", Object[].class)
                        .getResultList().forEach(Talk::row);
                break;
            case "page with count":
                var query = session.createSelectionQuery("from Customer where country = :country order by id", Customer.class).setParameter("country", "DE");
                row(query.getResultCount());
                query.setFirstResult(40).setMaxResults(20).getResultList().forEach(customer -> row(customer.id, customer.name));
                break;
            case "related rows":
                session.createSelectionQuery("from Sale s join fetch s.product where s.id <= 10 order by s.id", Sale.class)
                        .getResultList().forEach(sale -> row(sale.id, sale.product.name));
                break;
            case "lazy rows":
                row(session.find(Product.class, 7).sales.stream().map(sale -> sale.id).toList());
                break;
            case "since midnight":
                session.createSelectionQuery("select count(*), max(soldAt) from Sale where soldAt >= :since", Object[].class)
                        .setParameter("since", now.truncatedTo(ChronoUnit.DAYS).minusDays(7)).getResultList().forEach(Talk::row);
                break;
            case "local date":
                session.createSelectionQuery("select count(*) from Sale where soldAt < local date - 3650 day", Long.class).getResultList().forEach(Talk::row);
                break;
            case "the time of the application":
                session.createSelectionQuery("select count(*) from Sale where soldAt < :since", Long.class).setParameter("since", now.minusDays(3650))
                        .getResultList().forEach(Talk::row);
                break;
            case "a row lock":
                row(session.find(Store.class, 17, LockMode.PESSIMISTIC_WRITE).name);
                break;
            case "a random order":
                session.createNativeQuery("SELECT name FROM stores WHERE store_id = 17 ORDER BY random()", String.class).getResultList().forEach(Talk::row);
                break;
            default:
                throw new IllegalArgumentException("no such page: " + page);
        }
    }
}
