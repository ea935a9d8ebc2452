\set number :number + 1
/*+ arrow_cache */ SELECT count(*) FROM others WHERE id = :number;
