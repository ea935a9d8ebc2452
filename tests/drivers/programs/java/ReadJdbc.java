import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Properties;

/** Reads through pgjdbc: fetch size, prepareThreshold, setMaxRows. */
public final class ReadJdbc extends Talk {
    private static final int PART = 500;
    private static final int MOST_ROWS = 2000;

    private String mode;
    private Connection connection;

    public static void main(String[] arguments) throws Exception {
        new ReadJdbc().serve();
    }

    @Override
    void open(String wanted, String url, String user, String password) throws SQLException {
        mode = wanted;
        Properties properties = new Properties();
        properties.setProperty("user", user);
        properties.setProperty("password", password);
        if (mode.startsWith("prepareThreshold ")) {
            properties.setProperty("prepareThreshold", mode.substring("prepareThreshold ".length()));
        } else if (mode.endsWith("unnamed")) {
            properties.setProperty("prepareThreshold", "0");
        } else if (mode.equals("simple")) {
            properties.setProperty("preferQueryMode", "simple");
        }
        connection = DriverManager.getConnection(url, properties);
        connection.setAutoCommit(!inParts());
    }

    private boolean inParts() {
        return mode.startsWith("fetch size");
    }

    @Override
    void read(String sql, String[] parameters) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            if (inParts()) {
                statement.setFetchSize(PART);
            }
            if (mode.startsWith("setMaxRows")) {
                statement.setMaxRows(MOST_ROWS);
            }
            for (int i = 0; i < parameters.length; i++) {
                statement.setString(i + 1, parameters[i]);
            }
            try (ResultSet rows = statement.executeQuery()) {
                print(rows);
            }
        }
        if (inParts()) {
            connection.commit();
        }
    }

    @Override
    void close() throws SQLException {
        connection.close();
    }

    private static void print(ResultSet rows) throws SQLException {
        Object[] fields = new Object[rows.getMetaData().getColumnCount()];
        while (rows.next()) {
            for (int i = 0; i < fields.length; i++) {
                fields[i] = rows.getString(i + 1);
            }
            row(fields);
        }
    }
}
