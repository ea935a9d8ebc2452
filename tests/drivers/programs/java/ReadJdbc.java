import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.util.Properties;

import static java.nio.charset.StandardCharsets.UTF_8;

/** Reads through pgjdbc: fetch size, prepareThreshold, setMaxRows. talk.py describes the lines that it reads and writes. */
public final class ReadJdbc {
    private static final int PART = 500;
    private static final int MOST_ROWS = 2000;
    private static final PrintStream OUT = new PrintStream(System.out, false, UTF_8);

    private String mode;
    private Connection connection;

    public static void main(String[] arguments) throws Exception {
        ReadJdbc reader = new ReadJdbc();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            String[] words = line.split(" ");
            for (int i = 0; i < words.length; i++) {
                words[i] = URLDecoder.decode(words[i], UTF_8);
            }
            try {
                reader.answer(words);
                OUT.println("done");
            } catch (Exception error) {
                OUT.println("failed " + URLEncoder.encode(error.toString(), UTF_8));
            }
            OUT.flush();
        }
    }

    private void answer(String[] words) throws Exception {
        switch (words[0]) {
            case "open":
                open(words);
                break;
            case "read":
                read(words);
                break;
            default:
                connection.close();
        }
    }

    private void open(String[] words) throws Exception {
        mode = words[1];
        Properties properties = new Properties();
        properties.setProperty("user", words[5]);
        properties.setProperty("password", words[6]);
        if (mode.startsWith("prepareThreshold ")) {
            properties.setProperty("prepareThreshold", mode.substring("prepareThreshold ".length()));
        } else if (mode.endsWith("unnamed")) {
            properties.setProperty("prepareThreshold", "0");
        } else if (mode.equals("simple")) {
            properties.setProperty("preferQueryMode", "simple");
        }
        connection = DriverManager.getConnection("jdbc:postgresql://" + words[2] + ":" + words[3] + "/" + words[4], properties);
        connection.setAutoCommit(!inParts());
    }

    private boolean inParts() {
        return mode.startsWith("fetch size");
    }

    private void read(String[] words) throws Exception {
        try (PreparedStatement statement = connection.prepareStatement(words[1])) {
            if (inParts()) {
                statement.setFetchSize(PART);
            }
            if (mode.startsWith("setMaxRows")) {
                statement.setMaxRows(MOST_ROWS);
            }
            for (int i = 2; i < words.length; i++) {
                statement.setString(i - 1, words[i]);
            }
            try (ResultSet rows = statement.executeQuery()) {
                print(rows);
            }
        }
        if (inParts()) {
            connection.commit();
        }
    }

    private static void print(ResultSet rows) throws Exception {
        int columns = rows.getMetaData().getColumnCount();
        while (rows.next()) {
            StringBuilder line = new StringBuilder("row");
            for (int i = 1; i <= columns; i++) {
                String value = rows.getString(i);
                line.append(value == null ? " -" : " =" + URLEncoder.encode(value, UTF_8));
            }
            OUT.println(line);
        }
    }
}
