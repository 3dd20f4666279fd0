module parcae.example/pause

go 1.26
