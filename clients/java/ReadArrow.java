import java.sql.Connection;
import java.sql.DriverManager;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.postgresql.PGConnection;
import org.postgresql.copy.PGCopyInputStream;

/**
 * Reads a result as Arrow, batch by batch, with pgjdbc and arrow-java. Java wants --add-opens=java.base/java.nio=ALL-UNNAMED.
 *
 * java ReadArrow "jdbc:postgresql://localhost/shop?user=me" "SELECT * FROM sales"
 */
public final class ReadArrow {
    public static void main(String[] arguments) throws Exception {
        String copy = "COPY (" + arguments[1] + ") TO STDOUT (FORMAT arrow)";
        try (Connection connection = DriverManager.getConnection(arguments[0]);
                PGCopyInputStream stream = new PGCopyInputStream(connection.unwrap(PGConnection.class), copy);
                RootAllocator allocator = new RootAllocator();
                ArrowStreamReader reader = new ArrowStreamReader(stream, allocator)) {
            while (reader.loadNextBatch()) {
                for (FieldVector column : reader.getVectorSchemaRoot().getFieldVectors()) {
                    System.out.println(column.getName() + " " + column);
                }
            }
        }
    }
}
