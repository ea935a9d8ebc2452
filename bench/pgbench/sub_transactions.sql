\set first random(1, 100000 * :scale - :count)
SELECT change_in_sub_transactions(:first, :count);
