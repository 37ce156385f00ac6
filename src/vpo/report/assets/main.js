showHead();
showLegend();
showBest();
showSearch();
showGallery();
showPass();
showFront();
showPositions();
showCost();
showTraining();
showTables();
showCommands();
showContents();
// A link to a section leads there once everything above it is drawn.
if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
