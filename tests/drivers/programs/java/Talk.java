import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.util.Arrays;

import static java.nio.charset.StandardCharsets.UTF_8;

/** How a reading program of Java talks with run.py: talk.py describes the lines. */
abstract class Talk {
    private static final PrintStream OUT = new PrintStream(System.out, false, UTF_8);

    abstract void open(String mode, String url, String user, String password) throws Exception;

    abstract void read(String what, String[] parameters) throws Exception;

    abstract void close() throws Exception;

    /** A row of the answer. */
    static void row(Object... fields) {
        StringBuilder line = new StringBuilder("row");
        for (Object value : fields) {
            line.append(value == null ? " -" : " =" + URLEncoder.encode(String.valueOf(value), UTF_8));
        }
        OUT.println(line);
    }

    void serve() throws IOException {
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            String[] words = Arrays.stream(line.split(" ")).map(word -> URLDecoder.decode(word, UTF_8)).toArray(String[]::new);
            try {
                answer(words);
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
                open(words[1], "jdbc:postgresql://" + words[2] + ":" + words[3] + "/" + words[4], words[5], words[6]);
                break;
            case "read":
                read(words[1], Arrays.copyOfRange(words, 2, words.length));
                break;
            default:
                close();
        }
    }
}
