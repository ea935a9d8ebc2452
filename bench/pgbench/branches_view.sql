SELECT * FROM branches_view;
